#pragma once

#include <gpunn/data.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "data/folders/damaged_files.hpp"
#include "data/images/image_rows.hpp"

namespace gpunn::data {

// Makes the samples of the parts of an image folder, or a source that makes them when they are needed. If the number of
// channels is left open, every image gets room for three. If all images are grey, the rows are then moved together.
class ImageDecoder {
 public:
  ImageDecoder(const SizedImages& settings, std::filesystem::path root, Damaged damaged);

  // Decides whether the images of all parts, `files` in number, are decoded beforehand. `train` may give the size.
  void choose(std::size_t files, const std::vector<std::filesystem::path>& train, const DataConfig& config,
              std::vector<std::string>& notes);
  // The split has the labels and fields of all files; it loses the rows of damaged images that are left out.
  void decode(const std::vector<std::filesystem::path>& files, Split& split, std::vector<std::string>& notes);

  // Once all parts are decoded. Throws Error with all damaged images if data.damaged says so, and if no image of a
  // class remains.
  void settle_damaged(const Dataset& set, std::vector<std::string>& notes) const;
  // Likewise: if the number of channels was left open, 1 if all images are grey, else 3.
  void settle_channels(std::initializer_list<Split*> splits, std::vector<std::string>& notes) const;

 private:
  void take_size_of_first(const std::vector<std::filesystem::path>& files);
  std::vector<int64_t> leave_out_damaged(const std::vector<std::filesystem::path>& files, Split& split) const;
  void repeat_grey(Split& split, std::size_t before) const;

  const SizedImages& settings_;
  std::filesystem::path root_;
  Damaged damaged_;
  DamagedFiles damaged_files_;
  SampleForm form_;
  bool each_epoch_ = false;    // decoded each time that one is wanted
  std::vector<uint8_t> grey_;  // of each row of the parts so far: the image has one channel
};

}  // namespace gpunn::data

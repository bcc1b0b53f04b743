#pragma once

#include <gpunn/data.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/images/image.hpp"
#include "data/photographs/image_pairs.hpp"

namespace gpunn::data {

// Training images in files, which are read when they are wanted: a pair of each file, and one more of each further size
// that the settings want. Sizes are known beforehand, from the files' headers.
class PairFiles {
 public:
  // Throws Error as read_pairs() does.
  PairFiles(const std::vector<std::filesystem::path>& folders, const std::filesystem::path& small_folder,
            const PhotographSet& settings);

  std::size_t pairs() const { return pairs_.size(); }
  ImageSides input_sides(std::size_t pair) const { return pairs_[pair].input; }
  uint64_t bytes(std::size_t pair) const;  // in memory
  uint64_t bytes() const;                  // all
  // Of the files' names and sizes.
  uint32_t digest() const { return digest_; }

  // By any thread. Throws Error where the file has changed since.
  ImagePair read(std::size_t pair) const;

 private:
  struct Pair {
    std::filesystem::path file, small;  // `small` is empty where it is made
    std::string name;
    double factor = 1;
    ImageSides input;
  };

  PhotographSet settings_;
  std::vector<Pair> pairs_;
  uint32_t digest_ = 0;
};

}  // namespace gpunn::data

#pragma once

#include <gpunn/data.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/folders/damaged_files.hpp"
#include "data/images/image.hpp"
#include "data/photographs/image_pairs.hpp"

namespace gpunn::data {

// Training images in files, which are read when they are wanted: a pair of each file, and one more of each further size
// that the settings want. Sizes are known beforehand, from the files' headers.
class PairFiles {
 public:
  // Throws Error as read_pairs() does. Files whose header cannot be read have no pair.
  PairFiles(const std::vector<PhotographFolder>& folders, const PhotographSet& settings, Damaged policy);

  // Gathers the damaged files. Unless damaged ones are an error, all are decoded, and those that are left out lose
  // their pairs.
  void check(DamagedFiles& damaged);

  std::size_t pairs() const { return pairs_.size(); }
  ImageSides input_sides(std::size_t pair) const { return pairs_[pair].input; }
  uint64_t bytes(std::size_t pair) const;  // in memory
  uint64_t bytes() const;                  // all
  // Of the files' names and sizes.
  uint32_t digest() const;

  // By any thread. Throws Error if the file has changed since, or is damaged.
  ImagePair read(std::size_t pair) const;
  // Throws Error with all damaged files, if there are any.
  void refuse_all_damaged() const;

 private:
  std::vector<std::filesystem::path> all_files() const;

  struct Pair {
    std::filesystem::path file, small;  // `small` is empty where it is made
    std::string name;
    std::string told;  // the file's name and size, for the digest
    double factor = 1;
    ImageSides input;
  };

  PhotographSet settings_;
  Damaged policy_;
  std::vector<std::filesystem::path> without_header_;
  std::vector<Pair> pairs_;
};

}  // namespace gpunn::data

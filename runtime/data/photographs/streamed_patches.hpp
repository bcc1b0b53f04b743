#pragma once

#include <gpunn/batch_source.hpp>

#include <cstddef>
#include <cstdint>
#include <future>
#include <vector>

#include "data/photographs/pair_files.hpp"
#include "data/photographs/patch_source.hpp"

namespace gpunn::data {

// Patches of photographs that do not fit into memory together. Some photographs at a time are in memory, and so many
// patches are cut of them before others take their place, which are read meanwhile. Which ones these are, and all that
// is cut, are functions of the step and the row.
class StreamedPatches : public BatchSource {
 public:
  // Photographs that are smaller than a patch are left out. Throws Error(usage) where all are.
  StreamedPatches(PairFiles files, const PatchSettings& settings);
  ~StreamedPatches() override;
  StreamedPatches(const StreamedPatches&) = delete;
  StreamedPatches& operator=(const StreamedPatches&) = delete;

  int64_t read(int64_t step, const BatchRoom& room) override;
  bool always_full() const override { return true; }
  uint32_t digest() const override { return files_.digest(); }

  int64_t left_out() const { return left_out_; }  // pairs
  std::size_t at_a_time() const { return at_a_time_; }

 private:
  // The photographs that a window of so many patches is cut of.
  struct Window {
    int64_t number = -1;
    std::vector<ImagePair> pairs;
  };
  Window load(int64_t number) const;
  void go_to(int64_t number);

  const PairFiles files_;
  const PatchSettings settings_;
  std::vector<std::size_t> large_enough_;  // pairs of `files_`
  std::vector<uint64_t> places_;           // patches in these so far, up to each
  std::size_t at_a_time_ = 1;
  int64_t left_out_ = 0;
  Window now_;
  std::future<Window> next_;
};

}  // namespace gpunn::data

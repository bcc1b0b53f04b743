#pragma once

#include <gpunn/schedule_config.hpp>

#include <cstdint>
#include <optional>

#include "storage/checkpoint.hpp"

namespace gpunn::training {

// reduce_on_plateau: lowers the rate when a metric no longer improves, as PyTorch's ReduceLROnPlateau (version 2.11)
// but for a relative threshold below 0.
class Plateau {
 public:
  // Takes the metric after one more epoch. True if the rate changed. An undefined value changes nothing.
  bool observe(const ReduceOnPlateau& config, double base, double value);
  double rate(const ReduceOnPlateau& config, double base) const;

  void save(storage::Checkpoint& checkpoint) const;
  static Plateau from(const storage::Checkpoint& checkpoint);

 private:
  bool improves(const ReduceOnPlateau& config, double value) const;

  double scale_ = 1;  // of the base rate: so a run may be resumed with another
  std::optional<double> best_;
  int64_t stale_ = 0;     // epochs since the last improvement or drop
  int64_t cooldown_ = 0;  // epochs that are still not counted
};

}  // namespace gpunn::training

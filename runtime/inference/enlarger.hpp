#pragma once

#include <gpunn/model_info.hpp>
#include <gpunn/training.hpp>

#include <cstdint>

#include "inference/any_size.hpp"
#include "tasks/super_resolution/planes.hpp"

namespace gpunn::inference {

// Rows and columns, at least, of what the model gets. A model that mirrors the border takes no image that is smaller
// than what it mirrors: smaller ones are filled up.
inline constexpr int64_t kLeastSide = 16;

// What an enlarging took.
struct EnlargingWork {
  int64_t tiles = 0;
  double seconds = 0;  // in the model
};

// A model of the task super_resolution for images of any size, which it gets in parts where they are large.
class Enlarger {
 public:
  // Parts of `tile` rows and columns (0: whole images), of which `overlap` on each side are computed and not used.
  // Throws Error(usage) where these do not go together or the model is of another task.
  Enlarger(const TrainedModel& trained, int64_t tile, int64_t overlap);

  const PhotographInfo& settings() const { return settings_; }
  tasks::Planes bicubic(const tasks::Planes& image) const;
  // What the model makes of the planes that it sees.
  tasks::Planes enlarge(const tasks::Planes& image, EnlargingWork& work);

 private:
  AnySize model_;
  PhotographInfo settings_;
  int64_t tile_, overlap_;
};

}  // namespace gpunn::inference

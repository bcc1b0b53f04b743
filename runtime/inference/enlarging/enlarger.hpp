#pragma once

#include <gpunn/model_info.hpp>
#include <gpunn/training.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "data/images/planes.hpp"
#include "inference/tiles/any_size.hpp"
#include "inference/tiles/reach.hpp"

namespace gpunn::inference {

// Rows and columns, at least, of what the model gets. A model that mirrors the border takes no image that is smaller
// than what it mirrors: smaller ones are filled up.
inline constexpr int64_t kLeastSide = 16;

// What an enlarging took.
struct EnlargingWork {
  int64_t tiles = 0;
  double seconds = 0;     // in the model
  std::string note = {};  // of parts that differ from the whole image, or of an image too far seen for parts
};

// The parts that images go in, and what the user has to know of it.
struct Parts {
  int64_t tile = 0;  // rows and columns; 0: the whole image
  int64_t overlap = 0, step = 1;
  std::string note = {};
};

// A model of the task super_resolution for images of any size, which it gets in parts where they are large.
class Enlarger {
 public:
  // Throws Error(usage) if the parts' sizes do not go together or the model is of another task.
  Enlarger(const TrainedModel& trained, std::optional<int64_t> tile, std::optional<int64_t> overlap);

  const PhotographInfo& settings() const { return settings_; }
  data::Planes bicubic(const data::Planes& image) const;
  // What the model makes of the planes that it sees.
  data::Planes enlarge(const data::Planes& image, EnlargingWork& work);

 private:
  Parts parts_of(const data::Planes& input);
  data::Planes run(const data::Planes& tile, const Parts& parts);

  const TrainedModel& trained_;
  AnySize model_;
  PhotographInfo settings_;
  std::optional<int64_t> tile_, overlap_;
  std::optional<Sight> sight_;  // looked for when an image is larger than a part
};

}  // namespace gpunn::inference

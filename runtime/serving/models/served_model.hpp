#pragma once

#include <gpunn/model.hpp>

#include <cstdint>
#include <memory>
#include <string>

#include "serving/models/batcher.hpp"
#include "serving/models/statistics.hpp"

namespace gpunn::serving {

// A version of a model, loaded and ready.
struct ServedModel {
  ServedModel(std::string name_of_model, int64_t version_number, Model loaded, const BatchOptions& options)
      : name(std::move(name_of_model)),
        number(version_number),
        version(std::to_string(version_number)),
        model(std::move(loaded)),
        batch(options),
        batcher(model, options, statistics) {}

  std::string name;
  int64_t number;
  std::string version;  // the number as text
  Model model;
  BatchOptions batch;
  Statistics statistics;
  Batcher batcher;  // last: its threads use the others
};

using ServedModelPtr = std::shared_ptr<ServedModel>;

}  // namespace gpunn::serving

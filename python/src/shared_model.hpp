#pragma once

#include <gpunn/model.hpp>

#include <utility>

#include "errands/process.hpp"

namespace gpunn::python {

// Not freed in a forked child, where its device is out of reach.
struct SharedModel {
  explicit SharedModel(Model opened) : model(new Model(std::move(opened))) {}
  SharedModel(const SharedModel&) = delete;
  SharedModel(SharedModel&& other) noexcept : model(std::exchange(other.model, nullptr)) {}
  SharedModel& operator=(const SharedModel&) = delete;
  SharedModel& operator=(SharedModel&&) = delete;
  ~SharedModel() {
    if (!is_forked_child()) delete model;
  }
  const Model* model;
};

}  // namespace gpunn::python

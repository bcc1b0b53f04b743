#include "export/rounding_warnings.hpp"

#include <cmath>

#include <fmt/format.h>

#include "common/text.hpp"
#include "data/statistics.hpp"

namespace gpunn::interchange {

namespace {

constexpr std::size_t kMostWarned = 8;  // columns by name

void warn(std::vector<std::string>& warnings, const std::vector<double>& mean, const std::vector<double>& stddev,
          const std::vector<std::string>& names, const std::string& what, const std::string& advice) {
  std::size_t coarse = 0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const double size = std::abs(mean[i]);
    if (!data::is_coarse(size, stddev[i], DType::f32) || ++coarse > kMostWarned) continue;
    warnings.push_back(fmt::format(
        "WARNING: the {} {} of the ONNX model is f32: around {:.6g} neighbouring numbers are {:.6g} apart, and its "
        "standard deviation is {:.6g}. {}",
        what, in_quotes(i < names.size() ? names[i] : std::to_string(i)), mean[i], data::step_at(size, DType::f32),
        stddev[i], advice));
  }
  if (coarse > kMostWarned) {
    warnings.push_back(fmt::format("WARNING: the same holds for {} more columns", coarse - kMostWarned));
  }
}

}  // namespace

std::vector<std::string> rounding_warnings(const ModelInfo& info, bool raw) {
  std::vector<std::string> warnings;
  for (const Field* input : info.fields.of(Role::input)) {
    if (!raw || input->type.dtype != DType::f32) continue;
    warn(warnings, input->mean, input->stddev, input->names, "input",
         "Leave --raw-input out, and compute (x - mean) / std in f64 by the file's metadata");
  }
  if (!info.fields.target().mean.empty()) {
    warn(warnings, info.fields.target().mean, info.fields.target().stddev, info.fields.target().names, "output",
         "Take the first output, and compute x * std + mean in f64 by target of the metadata's model");
  }
  return warnings;
}

}  // namespace gpunn::interchange

// Class activation maps: which parts of an image speak for a class.
#pragma once

#include <gpunn/export.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpunn {

// How the channels of a layer are weighted.
enum class ExplainMethod {
  gradcam,            // "gradcam": Selvaraju et al., Grad-CAM, ICCV 2017
  gradcam_plus_plus,  // "gradcam++": Chattopadhay et al., Grad-CAM++, WACV 2018
};
GPUNN_API std::string_view name_of(ExplainMethod method);
GPUNN_API std::vector<std::string> explain_methods();                   // the names of all methods
GPUNN_API ExplainMethod explain_method_named(const std::string& name);  // throws Error(usage) for an unknown name

// The class and the layer of a map, and the method.
struct ExplainOptions {
  std::optional<int64_t> class_index = {};  // counts from 0; none: the class that the model predicts
  std::string layer = {};                   // empty: the last one with more than one row or column
  ExplainMethod method = ExplainMethod::gradcam;
};

// Why a model sees a class in an image.
struct Explanation {
  int64_t class_index = 0;
  std::string class_name = {};  // empty: classes have no names
  double score = 0;             // its probability; of a regression its number; of a model without a task the raw output
  bool is_probability = false;  // of `score`
  std::string layer = {};
  int64_t height = 0, width = 0;  // of the image as the model takes it
  std::vector<float> map = {};    // [height, width], from 0 to 1
};

}  // namespace gpunn

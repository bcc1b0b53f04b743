#include <array>

#include "config/layers/families.hpp"

namespace gpunn::config {

std::vector<LayerType> trigonometry_layers() {
  struct Function {
    const char *name, *help;
  };
  constexpr std::array kFunctions = {
      Function{"sin", "The sine of x in radians; exact to f32 up to |x| = 1e5."},
      Function{"cos", "The cosine of x in radians; exact to f32 up to |x| = 1e5."},
      Function{"tan", "The tangent of x in radians; exact to f32 up to |x| = 1e5."},
      Function{"asin", "The inverse sine, in radians."},
      Function{"acos", "The inverse cosine, in radians."},
      Function{"atan", "The inverse tangent, in radians."},
      Function{"sinh", "The hyperbolic sine."},
      Function{"cosh", "The hyperbolic cosine."},
      Function{"asinh", "The inverse hyperbolic sine."},
      Function{"acosh", "The inverse hyperbolic cosine."},
      Function{"atanh", "The inverse hyperbolic tangent."},
  };
  std::vector<LayerType> types;
  for (const Function& function : kFunctions) types.push_back({function.name, function.help, 1, {}});
  return types;
}

}  // namespace gpunn::config

#include "serving/api/api.hpp"

namespace gpunn::serving {

std::string_view browser_page() {
  static constexpr std::string_view kPage =
#include "serving/api/page.inc"
      ;
  return kPage;
}

}  // namespace gpunn::serving

// Division that rounds up, for host and device.
#pragma once

namespace gpunn::cuda {

// n / by, rounded up; n >= 0 and by > 0.
template <class N, class By>
constexpr auto divide_up(N n, By by) {
  return (n + by - 1) / by;
}

}  // namespace gpunn::cuda

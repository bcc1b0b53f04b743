#pragma once

namespace gpunn {

// What the factors of a product may be rounded to; sums stay fp32.
enum class Precision { fp32, tf32, bf16 };

}  // namespace gpunn

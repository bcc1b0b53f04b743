#pragma once

#include <gpunn/metric.hpp>

#include <cstdint>
#include <string>

// Numbers for people.
namespace gpunn::cli {

std::string bytes_text(uint64_t bytes);      // "1.5 MiB"
std::string duration_text(double seconds);   // "850 us", "12.3 s", "3:05", "2:03:04"
std::string clock_text(double seconds);      // "0:07", "2:03:04"
std::string rate_text(double per_second);    // "950", "53.2k", "1.25M"
std::string score_text(const Score& score);  // "97.75 %", or "53.28" if it is not a share; "-" if undefined
std::string percent_text(double share);      // "98.61 %"
std::string count_text(int64_t count);       // "60 000"

}  // namespace gpunn::cli

#pragma once

#include <cstddef>
#include <cstdint>

// The names and limits of docs/checkpoint-format.md that writer and reader share.
namespace gpunn::storage::format {

inline constexpr const char* kName = "gpunn-checkpoint";
inline constexpr int64_t kVersion = 2;
inline constexpr int64_t kVersionWithoutModel = 1;

inline constexpr const char* kFormat = "format";
inline constexpr const char* kFormatVersion = "format_version";
inline constexpr const char* kProgramVersion = "gpunn_version";
inline constexpr const char* kCreated = "created";
inline constexpr const char* kBackend = "backend";
inline constexpr const char* kExperiment = "experiment";
inline constexpr const char* kGiven = "given";  // optional
inline constexpr const char* kModel = "model";  // since version 2
inline constexpr const char* kCounters = "counters";
inline constexpr const char* kMetrics = "metrics";
inline constexpr const char* kParameters = "parameters";
inline constexpr const char* kBuffers = "buffers";  // files of gpunn 0.1 may lack it
inline constexpr const char* kOptimizer = "optimizer";
inline constexpr const char* kState = "state";
inline constexpr const char* kRank = "rank";  // 0, on the dataset of a scalar, which has the shape [1]

inline constexpr std::size_t kMaxRank = 8;
inline constexpr std::size_t kMaxNameBytes = 1024;
inline constexpr std::size_t kMaxAttributeBytes = 4096;
inline constexpr std::size_t kMaxTextBytes = std::size_t{64} << 20;  // of `experiment` and `model`
inline constexpr std::size_t kMaxEntries = 1'000'000;                // of one group

}  // namespace gpunn::storage::format

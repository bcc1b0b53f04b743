#pragma once

#include <gpunn/export.h>
#include <gpunn/training.hpp>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace gpunn {

// The run that a report is of, and where the page goes.
struct ReportRequest {
  std::filesystem::path run;   // a run folder
  std::filesystem::path file;  // empty: report.html in it
  std::vector<Override> overrides = {};
  int64_t mistakes = 24;  // so many are shown at most
};

// Evaluates a run's best checkpoint (else its last) and writes what there is to see of the run as one HTML page that
// needs nothing else: figures, learning curves, each class, the confusion matrix, the filters of the first convolution
// and the worst mistakes with their images. Returns the file. Throws Error(missing) where the folder is no run's, and
// Error(usage) where the file can't be written, before the model is evaluated.
GPUNN_API std::filesystem::path write_report(const ReportRequest& request, TrainingListener* listener = nullptr);

}  // namespace gpunn

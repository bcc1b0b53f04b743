#pragma once

#include <gpunn/export.h>
#include <gpunn/training.hpp>

#include <cstdint>
#include <filesystem>
#include <vector>

namespace gpunn {

// The run that a report describes, and the page's file.
struct ReportRequest {
  std::filesystem::path run;   // a run folder
  std::filesystem::path file;  // empty: report.html in it
  std::vector<Override> overrides = {};
  int64_t mistakes = 24;  // most mistakes that the page shows
};

// Evaluates a run's best checkpoint (else its last) and writes one HTML page that needs no other file: figures,
// learning curves, each class, the confusion matrix, the filters of the first convolution and the worst mistakes with
// their images. Returns the file. Before it evaluates the model, it throws Error(missing) if the folder is not a run
// folder, and Error(usage) if the file can't be written.
GPUNN_API std::filesystem::path write_report(const ReportRequest& request, TrainingListener* listener = nullptr);

}  // namespace gpunn

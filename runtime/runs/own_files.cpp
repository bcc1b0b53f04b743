#include "runs/own_files.hpp"

#include <string>
#include <system_error>
#include <vector>

#include "common/files.hpp"
#include "common/temporaries.hpp"

namespace gpunn::training {

namespace fs = std::filesystem;

namespace {

// What `report` and `--profile` write themselves may be written again.
bool is_output(const fs::path& file) { return file.extension() == ".html" || file.filename() == "trace.json"; }

// Of the run folder that this is; nothing where it is none.
std::vector<fs::path> files_of_run(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failure;
  if (!fs::exists(folder / "last.h5", failure)) return files;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure)) {
    if (!is_output(it->path())) files.push_back(it->path());
  }
  return files;
}

}  // namespace

void require_output(const fs::path& file, const Experiment* experiment) {
  std::error_code failure;
  const fs::path target = fs::weakly_canonical(file, failure);
  std::vector<fs::path> kept = files_of_run(folder_of(failure ? file : target));
  if (experiment != nullptr) {
    for (const fs::path& read : {experiment->file, experiment->model.file, experiment->init_from.file,
                                 experiment->init_from.names, experiment->data.path}) {
      kept.push_back(read);
    }
  }
  require_writable(file, kept);
}

}  // namespace gpunn::training

#include "inference/results/result_files.hpp"

#include <gpunn/error.hpp>

#include <set>
#include <string>

#include "common/files.hpp"
#include "data/folders/folder_scan.hpp"

namespace gpunn::inference {

namespace fs = std::filesystem;

std::vector<ImageFile> images_in(const std::vector<fs::path>& inputs) {
  std::vector<ImageFile> images;
  for (const fs::path& input : inputs) {
    if (!is_folder(input)) {
      images.push_back({input, input.filename()});
      continue;
    }
    const std::vector<fs::path> found = data::images_beneath(input);
    if (found.empty()) throw Error(input.string() + ": no images there", ExitCode::missing);
    for (const fs::path& file : found) images.push_back({file, file.lexically_relative(input)});
  }
  return images;
}

std::vector<fs::path> result_files(const std::vector<fs::path>& inputs, const std::vector<ImageFile>& images,
                                   const fs::path& to) {
  const bool single = inputs.size() == 1 && !is_folder(inputs.front()) && !is_folder(to);
  if (single && to.extension() != ".png") {
    throw Error(to.string() + ": results are written as PNG; expected a name that ends in .png", ExitCode::usage);
  }
  if (single) return {to};
  std::vector<fs::path> results;
  for (const ImageFile& image : images) results.push_back((to / image.name).replace_extension(".png"));
  return results;
}

void require_own_places(const std::vector<ImageFile>& images, const std::vector<fs::path>& results,
                        const char* option) {
  std::set<fs::path> taken, sources;
  for (const ImageFile& image : images) sources.insert(fs::weakly_canonical(image.file));
  for (const fs::path& file : results) {
    const fs::path place = fs::weakly_canonical(file);
    if (sources.contains(place)) {
      throw Error(file.string() + " would replace an image that is read; give another " + option, ExitCode::usage);
    }
    if (taken.insert(place).second) continue;
    throw Error(file.string() + " would be written twice: two images have that name; give them one by one",
                ExitCode::usage);
  }
}

}  // namespace gpunn::inference

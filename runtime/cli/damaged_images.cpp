#include "cli/damaged_images.hpp"

#include <algorithm>
#include <string>

#include "cli/output.hpp"
#include "cli/terminal.hpp"

namespace gpunn::cli {

void add_damaged_option(Verb verb, Damaged& policy) {
  verb.add_choice("--damaged", policy,
                  {{"error", Damaged::error}, {"skip", Damaged::skip}, {"repair", Damaged::repair}},
                  "What becomes of damaged images once the others are done: an error, or none. repair: use the pixels "
                  "that can be read");
}

void DamagedImages::add_to(Json& document, const char* key) const {
  for (const DamagedImage& image : images_) {
    if (!image.repaired) document.push_back({{key, image.file.string()}, {"error", image.reason}});
  }
}

void DamagedImages::report(Damaged policy, std::size_t answered) const {
  const auto left_out = static_cast<std::size_t>(std::ranges::count(images_, false, &DamagedImage::repaired));
  const std::size_t all = answered + left_out;
  if (policy == Damaged::error) {
    flush_stdout();
    refuse_damaged(images_, all, "",
                   "The other images are done. --damaged skip leaves these out, --damaged repair uses the pixels that "
                   "can be read");
  }
  for (const std::string& note : damage_notes(images_, all, "")) write_to_stderr("note: " + printable(note) + "\n");
}

}  // namespace gpunn::cli

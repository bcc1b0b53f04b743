#include "cli/options/damaged_images.hpp"

#include <gpunn/error.hpp>

#include <string>

#include "cli/terminal/output.hpp"
#include "cli/terminal/status_line.hpp"
#include "cli/terminal/terminal.hpp"

namespace gpunn::cli {

void add_damaged_option(Verb verb, Damaged& policy) {
  verb.add_choice("--damaged", policy,
                  {{"error", Damaged::error}, {"skip", Damaged::skip}, {"repair", Damaged::repair}},
                  "What becomes of damaged images once the others are done: an error, or none. repair: use the pixels "
                  "that can be read");
}

ExitCode DamagedImages::finish(bool json, Json document, const char* key, Damaged policy, std::size_t answered) const {
  std::size_t left_out = 0;
  for (const DamagedImage& image : images_) {
    if (image.repaired) continue;
    ++left_out;
    document.push_back({{key, image.file.string()}, {"error", image.reason}});
  }
  const bool refused = policy == Damaged::error && !images_.empty();
  const bool answers = json && (!refused || answered > 0);
  if (answers) print_json(document);
  const std::size_t all = answered + left_out;
  if (!refused) {
    for (const std::string& note : damage_notes(images_, all, "")) {
      StatusLine::of_stderr().print("note: " + printable(note));
    }
    return ExitCode::done;
  }
  flush_stdout();
  try {
    refuse_damaged(images_, all, "",
                   "The other images are done. --damaged skip leaves these out, --damaged repair uses the pixels that "
                   "can be read");
  } catch (const Error& error) {
    if (!answers) throw;
    StatusLine::of_stderr().print("gpunn: " + printable(error.what()));
    return error.code();
  }
  return ExitCode::failed;
}

}  // namespace gpunn::cli

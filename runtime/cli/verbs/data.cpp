#include <gpunn/data.hpp>

#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/table.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"
#include "cli/verbs/data_inspect.hpp"

namespace gpunn::cli {

namespace {

ExitCode list(bool json) {
  const std::vector<DatasetInfo> sets = list_datasets();
  if (json) {
    Json document = Json::array();
    for (const DatasetInfo& info : sets) document.push_back(to_json(info));
    print_json(document);
    return ExitCode::done;
  }
  Table table({{"NAME"}, {"WHERE"}, {"WHAT"}});
  for (const DatasetInfo& info : sets) {
    const std::string missing = fmt::format("not here: gpunn data get {}", info.name);
    table.add({info.name,
               info.synthetic       ? "made by gpunn"
               : info.users_own     ? "data.path"
               : info.found.empty() ? missing
                                    : info.found.string(),
               info.description});
  }
  put("{}", table.text(terminal_of(STDOUT_FILENO).colour));
  return ExitCode::done;
}

ExitCode get(const std::vector<std::string>& names, bool json) {
  Json document = Json::array();
  for (const std::string& name : names) {
    const std::filesystem::path folder = download_dataset(name);
    if (json) {
      document.push_back({{"name", name}, {"folder", folder.string()}});
    } else {
      put("{} is in {}\n", name, folder.string());
    }
  }
  if (json) print_json(document);
  return ExitCode::done;
}

ExitCode pack(const std::filesystem::path& folder, const std::filesystem::path& file, const PackOptions& options,
              bool json) {
  const PackReport report = pack_folder(folder, file, options);
  if (json) {
    print_json({{"file", file.string()},
                {"files", report.files},
                {"images", report.images},
                {"bytes", report.bytes},
                {"left_out", report.left_out}});
    return ExitCode::done;
  }
  put("{} has {} files, {} of them images, {}\n", printable(file.string()), report.files, report.images,
      bytes_text(report.bytes));
  for (const std::string& wrong : report.left_out) put("left out: {}\n", printable(wrong));
  put("\nnext:\n  set data.path to it in place of the folder\n");
  return ExitCode::done;
}

}  // namespace

void add_data(CommandLine& line) {
  struct Options {
    std::vector<std::string> names;
    InspectOptions inspect;
    std::filesystem::path folder, packed;
    PackOptions pack;
  };
  auto options = std::make_shared<Options>();
  Verb verb = line.program.add_verb("data", "List, fetch and look at data sets", {"gpunn data list"});
  verb.require_verb();

  Verb list_verb = verb.add_verb("list", "List the data sets and where they are", {"gpunn data list --json"});
  add_json_flag(list_verb, line);
  list_verb.callback([&line] { line.action = [&line] { return list(line.json); }; });

  Verb get_verb = verb.add_verb("get", "Fetch data sets into the user's cache folder", {"gpunn data get mnist"});
  get_verb.add_option("name", options->names, "Names that 'gpunn data list' shows").required().type_name("DATASET");
  add_json_flag(get_verb, line);
  get_verb.callback([&line, options] { line.action = [&line, options] { return get(options->names, line.json); }; });

  Verb pack_verb = verb.add_verb("pack", "Write a folder of images into one file, which stands for the folder",
                                 {"gpunn data pack ../photos --to photos.gpack",
                                  "gpunn data pack ../photos --to photos.gpack --decoded --shorter-side 256"});
  pack_verb.add_option("folder", options->folder, "Folder to pack, with every file that an experiment reads")
      .required()
      .type_name("FOLDER");
  pack_verb.add_option("--to", options->packed, "The file to write").required().type_name("FILE.gpack");
  pack_verb.add_flag("--decoded", options->pack.decoded, "Store decoded pixels: faster to read, but larger");
  pack_verb
      .add_option("--shorter-side", options->pack.shorter_side,
                  "With --decoded: scale the shorter side to this many pixels if it is longer; 0: no scaling")
      .range(0, 16384)
      .type_name("N");
  pack_verb.add_flag("--leave-out-damaged", options->pack.leave_out_damaged,
                     "Skip images that can't be read; by default they are an error");
  add_json_flag(pack_verb, line);
  pack_verb.callback([&line, options] {
    line.action = [&line, options] { return pack(options->folder, options->packed, options->pack, line.json); };
  });

  Verb inspect_verb = verb.add_verb("inspect", "Read a data set and show its rows, classes, ranges and images",
                                    {"gpunn data inspect mnist --path ../data --sheet mnist.png",
                                     "gpunn data inspect ../photos --set data.image_size=[64,64]",
                                     "gpunn data inspect experiments/lenet_mnist.yaml"});
  add_inspect_options(inspect_verb, options->inspect);
  add_json_flag(inspect_verb, line);
  inspect_verb.callback(
      [&line, options] { line.action = [&line, options] { return inspect(options->inspect, line.json); }; });
}

}  // namespace gpunn::cli

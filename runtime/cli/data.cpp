#include <gpunn/data.hpp>

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/table.hpp"
#include "cli/terminal.hpp"
#include "cli/units.hpp"

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
               : info.found.empty() ? missing
                                    : info.found.string(),
               info.description});
  }
  fmt::print("{}", table.text(terminal_of(STDOUT_FILENO).colour));
  return ExitCode::done;
}

// Draws the state of a download on a terminal, at most once a percent.
class DownloadLine {
 public:
  explicit DownloadLine(const Terminal& terminal) : terminal_(terminal) {}
  void show(const DownloadProgress& progress) {
    if (progress.file != file_) {
      finish();
      file_ = progress.file;
      percent_ = -1;
      if (!terminal_.interactive) fmt::print(stderr, "getting {}\n", printable(file_));
    }
    const int percent = progress.total == 0 ? -2 : static_cast<int>(100 * progress.bytes / progress.total);
    if (!terminal_.interactive || (percent == percent_ && percent >= 0)) return;
    percent_ = percent;
    const std::string total = progress.total == 0 ? "" : fmt::format(" of {}", bytes_text(progress.total));
    fmt::print(stderr, "\r\x1b[2K{}  {}{}", printable(file_), bytes_text(progress.bytes), total);
    open_ = true;
  }
  void finish() {
    if (open_) fmt::print(stderr, "\n");
    open_ = false;
  }

 private:
  Terminal terminal_;
  std::string file_;
  int percent_ = -1;
  bool open_ = false;
};

ExitCode get(const std::vector<std::string>& names, bool json) {
  Json document = Json::array();
  for (const std::string& name : names) {
    DownloadLine shown(terminal_of(STDERR_FILENO));
    std::filesystem::path folder;
    try {
      folder = download_dataset(name, [&](const DownloadProgress& progress) { shown.show(progress); });
    } catch (...) {
      shown.finish();
      throw;
    }
    shown.finish();
    if (json) {
      document.push_back({{"name", name}, {"folder", folder.string()}});
    } else {
      fmt::print("{} is in {}\n", name, folder.string());
    }
  }
  if (json) print_json(document);
  return ExitCode::done;
}

std::vector<int64_t> histogram(const Split& split, int64_t classes) {
  std::vector<int64_t> counts(static_cast<std::size_t>(std::max<int64_t>(classes, 0)));
  for (const int32_t label : split.labels) {
    if (label >= 0 && label < classes) ++counts[static_cast<std::size_t>(label)];
  }
  return counts;
}

Json split_json(const Split& split, int64_t classes) {
  return {{"rows", split.rows()}, {"type", to_string(split.samples)}, {"labels", histogram(split, classes)}};
}

ExitCode inspect(const DataConfig& config, bool json) {
  const Dataset set = load_dataset(config);
  if (json) {
    print_json({{"name", set.name},
                {"source", set.source},
                {"fallback_of", set.fallback_of},
                {"classes", set.classes},
                {"class_names", set.class_names},
                {"mean", set.mean},
                {"stddev", set.stddev},
                {"train", split_json(set.train, set.classes)},
                {"test", split_json(set.test, set.classes)}});
    return ExitCode::done;
  }
  fmt::print("{} from {}\n", set.name, printable(set.source));
  fmt::print("train  {} rows, {}, {}\n", count_text(set.train.rows()), to_string(set.train.samples),
             bytes_text(set.train.values.size()));
  fmt::print("test   {} rows, {}, {}\n", count_text(set.test.rows()), to_string(set.test.samples),
             bytes_text(set.test.values.size()));
  for (std::size_t i = 0; i < set.mean.size() && i < set.stddev.size(); ++i) {
    fmt::print("channel {}: mean {:.4f}, standard deviation {:.4f}\n", i, set.mean[i], set.stddev[i]);
  }
  const std::vector<int64_t> train = histogram(set.train, set.classes), test = histogram(set.test, set.classes);
  const int64_t most = train.empty() ? 1 : std::max<int64_t>(1, *std::max_element(train.begin(), train.end()));
  Table table({{"CLASS", Align::right}, {"NAME"}, {"TRAIN", Align::right}, {"TEST", Align::right}, {""}});
  for (std::size_t i = 0; i < train.size(); ++i) {
    table.add({std::to_string(i), i < set.class_names.size() ? printable(set.class_names[i]) : "", count_text(train[i]),
               count_text(test[i]), std::string(static_cast<std::size_t>(30 * train[i] / most), '#')});
  }
  fmt::print("\n{}", table.text(terminal_of(STDOUT_FILENO).colour));
  return ExitCode::done;
}

}  // namespace

void add_data(CommandLine& line) {
  struct Options {
    std::vector<std::string> names;
    DataConfig config;
  };
  auto options = std::make_shared<Options>();
  CLI::App* verb = add_verb(line.app, "data", "List, fetch and look at data sets", {"gpunn data list"});
  verb->require_subcommand(1);

  CLI::App* list_verb = add_verb(*verb, "list", "List the data sets and where they are", {"gpunn data list --json"});
  add_json_flag(*list_verb, line);
  list_verb->callback([&line] { line.action = [&line] { return list(line.json); }; });

  CLI::App* get_verb = add_verb(*verb, "get", "Fetch data sets into the user's cache folder", {"gpunn data get mnist"});
  get_verb->add_option("name", options->names, "Names that 'gpunn data list' shows")->required()->type_name("NAME");
  add_json_flag(*get_verb, line);
  get_verb->callback([&line, options] { line.action = [&line, options] { return get(options->names, line.json); }; });

  CLI::App* inspect_verb = add_verb(*verb, "inspect", "Read a data set and show its rows, shapes and classes",
                                    {"gpunn data inspect digits", "gpunn data inspect mnist --path ../data"});
  inspect_verb->add_option("name", options->config.dataset, "The data set")->required()->type_name("NAME");
  inspect_verb->add_option("--path", options->config.path, "A folder to look in first")->type_name("DIR");
  add_json_flag(*inspect_verb, line);
  inspect_verb->callback(
      [&line, options] { line.action = [&line, options] { return inspect(options->config, line.json); }; });
}

}  // namespace gpunn::cli

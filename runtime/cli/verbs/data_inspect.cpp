#include "cli/verbs/data_inspect.hpp"

#include <gpunn/augmentation.hpp>
#include <gpunn/data.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "cli/options/experiment_options.hpp"
#include "cli/reports/json.hpp"
#include "cli/terminal/output.hpp"
#include "cli/terminal/table.hpp"
#include "cli/terminal/terminal.hpp"
#include "cli/terminal/units.hpp"
#include "common/significant_digits.hpp"

namespace gpunn::cli {

namespace fs = std::filesystem;

namespace {

constexpr int kDigitsOfRanges = 5;
constexpr std::size_t kMostChannelRows = 16;  // a table has an image's channels, or the first features

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "''" : std::string(1, c);
  return result + "'";
}

// An experiment around a data set, so that `--set` accepts and checks every key of `data`.
DataConfig config_of(const std::string& dataset, const fs::path& path, const InspectOptions& options) {
  std::string text = "model: {layers: [flatten, linear: {units: 1}]}\ndata: {dataset: " + quoted(dataset);
  if (!path.empty()) text += ", path: " + quoted(path.string());
  if (path.extension() == ".tsv") text += ", delimiter: tab";
  return parse_experiment(text + "}\n", options.what, parse_settings(options.settings)).data;
}

// The kind of data set as which a user's file or folder is read.
std::string kind_of(const fs::path& path) {
  std::error_code ignored;
  const std::string ending = path.extension().string();
  if (fs::is_directory(path, ignored) || ending == ".gpack") return "image_folder";
  if (ending == ".h5" || ending == ".hdf5") return "hdf5";
  if (ending == ".csv" || ending == ".tsv") return "csv";
  return {};
}

bool is_experiment(const fs::path& path) { return path.extension() == ".yaml" || path.extension() == ".yml"; }

DataConfig config_of(const InspectOptions& options) {
  const fs::path path = options.what;
  const std::vector<DatasetInfo> sets = list_datasets();
  const bool named =
      std::any_of(sets.begin(), sets.end(), [&](const DatasetInfo& s) { return s.name == options.what; });
  if (named) return config_of(options.what, options.path, options);
  std::error_code failure;
  const fs::file_status status = fs::status(path, failure);
  if (failure && status.type() != fs::file_type::not_found) {
    throw Error("can't look at " + options.what + ": " + failure.message(), ExitCode::missing);
  }
  if (!fs::exists(status)) {
    if (path.has_parent_path()) throw Error(options.what + ": no such file or folder", ExitCode::missing);
    DataConfig unknown;  // whose loading suggests the nearest name
    unknown.dataset = options.what;
    return unknown;
  }
  if (is_experiment(path)) {
    DataConfig config = load_experiment(path, parse_settings(options.settings)).data;
    if (!options.path.empty()) config.path = options.path;
    return config;
  }
  const std::string kind = kind_of(path);
  if (kind.empty()) {
    const std::string_view about = explanation(path.extension().string());
    throw Error(options.what +
                    ": expected a data set's name, an experiment (.yaml), a folder of images, or a file that ends in "
                    ".gpack, .h5, .hdf5, .csv or .tsv" +
                    (about.empty() ? "" : ". " + std::string(about)),
                ExitCode::usage);
  }
  return config_of(kind, path, options);
}

// Checked before the data is read, which may take long.
void require_sheet_of_its_own(const InspectOptions& options) {
  for (const fs::path& read : {fs::path(options.what), options.path}) {
    std::error_code not_there;
    if (!options.sheet.empty() && fs::equivalent(options.sheet, read, not_there)) {
      throw Error("--sheet " + options.sheet.string() + " would replace " + read.string() +
                      ", which is read here; give another name",
                  ExitCode::usage);
    }
  }
}

void write_sheet(const Dataset& set, const InspectOptions& options) {
  if (!options.augmented) return write_contact_sheet(set, options.sheet, options.columns);
  if (!is_experiment(options.what)) {
    throw Error("--augmented needs an experiment's file (.yaml), found " + options.what, ExitCode::usage);
  }
  Experiment experiment = load_experiment(options.what, parse_settings(options.settings));
  if (!options.path.empty()) experiment.data.path = options.path;
  // Batches are shuffled: four times as many rows as the sheet has hold enough of each class almost always.
  write_contact_sheet(augmented_samples(experiment, 4 * options.columns * set.fields.target().count()), options.sheet,
                      options.columns);
}

Json ranges_json(const std::vector<ChannelSummary>& channels) {
  Json ranges = Json::array();
  for (const ChannelSummary& channel : channels) {
    ranges.push_back({{"min", channel.min}, {"max", channel.max}, {"mean", channel.mean}, {"stddev", channel.stddev}});
  }
  return ranges;
}

Json split_json(const Schema& fields, const Split& split, const SplitSummary& summary, const FieldSummary& target) {
  Json part = {{"rows", split.rows()},
               {"type", to_string(split.samples)},
               {"labels", target.counts},
               {"channels", ranges_json(summary.channels)},
               {"targets", ranges_json(target.columns)}};
  for (const Field* input : fields.of(Role::input)) {
    const auto further = summary.fields.find(input->name);
    if (further != summary.fields.end()) part["inputs"][input->name] = ranges_json(further->second.columns);
  }
  return part;
}

struct Part {
  const char* name;
  const Split& split;
  SplitSummary summary;
  FieldSummary target;
};

// `name` is the name of class `number`.
template <class Name>
void print_ranges(const std::vector<ChannelSummary>& channels, const Column& title, const Name& name, bool colour) {
  Table table({title, {"MIN", Align::right}, {"MAX", Align::right}, {"MEAN", Align::right}, {"STDDEV", Align::right}});
  for (std::size_t i = 0; i < std::min(channels.size(), kMostChannelRows); ++i) {
    const ChannelSummary& c = channels[i];
    const auto text = [&](double number) {
      return fmt::format("{:.{}g}", number, digits_beyond(number, c.stddev, kDigitsOfRanges));
    };
    table.add({name(i), text(c.min), text(c.max), text(c.mean), text(c.stddev)});
  }
  put("\nof the training samples as they are stored:\n{}", table.text(colour));
  if (channels.size() > kMostChannelRows) put("and {} more\n", channels.size() - kMostChannelRows);
}

std::string upper(std::string word) {
  for (char& c : word) c = static_cast<char>(c - 'a' + 'A');
  return word;
}

// The number of rows of each class or label.
void print_classes(const Dataset& set, const std::vector<Part>& parts, bool colour) {
  const Field& field = set.fields.target();
  const bool named = !field.names.empty() && field.names.front() != "0";
  std::vector<Column> columns = {{upper(parts.front().target.counted), Align::right}, {"NAME"}};
  if (!named) columns.pop_back();
  for (const Part& part : parts) {
    columns.push_back({upper(part.name), Align::right});
  }
  columns.push_back({""});
  Table table(columns);
  const std::vector<int64_t>& train = parts.front().target.counts;
  const int64_t most = train.empty() ? 1 : std::max<int64_t>(1, *std::max_element(train.begin(), train.end()));
  for (std::size_t i = 0; i < train.size(); ++i) {
    std::vector<std::string> cells = {std::to_string(i)};
    if (named) cells.push_back(i < field.names.size() ? printable(field.names[i]) : "");
    for (const Part& part : parts) cells.push_back(count_text(part.target.counts[i]));
    cells.emplace_back(static_cast<std::size_t>(30 * train[i] / most), '#');
    table.add(std::move(cells));
  }
  put("\n{}", table.text(colour));
}

// The columns of inputs behind the first.
void print_further_inputs(const Dataset& set, const SplitSummary& train, bool colour) {
  for (const Field* input : set.fields.of(Role::input)) {
    const auto summary = train.fields.find(input->name);
    if (input == &set.fields.input() || summary == train.fields.end() || summary->second.columns.empty()) continue;
    const auto name = [&](std::size_t i) {
      return i < input->names.size() ? printable(input->names[i]) : std::to_string(i);
    };
    print_ranges(summary->second.columns, {"INPUT " + printable(input->name)}, name, colour);
  }
}

void print_report(const Dataset& set, const std::vector<Part>& parts) {
  const bool colour = terminal_of(STDOUT_FILENO).colour;
  put("{} from {}\n", set.name, printable(set.source));
  for (const Part& part : parts) {
    put("{:<10}  {} rows, {}, {}\n", part.name, count_text(part.split.rows()), to_string(part.split.samples),
        part.split.source == nullptr ? bytes_text(part.split.values.size())
                                     : "decoded anew each time, " + bytes_text(part.split.samples.bytes()) + " in all");
  }
  for (std::size_t i = 0;
       i < std::min(kMostChannelRows, std::min(set.fields.input().mean.size(), set.fields.input().stddev.size()));
       ++i) {
    put("normalised by channel {}: mean {:.4f}, standard deviation {:.4f}\n", i, set.fields.input().mean[i],
        set.fields.input().stddev[i]);
  }
  for (const std::string& note : set.notes) put("note: {}\n", printable(note));
  if (set.batches != nullptr) return;  // patches, or varied images, are made while training
  const SplitSummary& train = parts.front().summary;
  const bool features = set.train.samples.shape.size() == 2;
  print_ranges(
      train.channels, {features ? "FEATURE" : "CHANNEL", Align::right}, [](std::size_t i) { return std::to_string(i); },
      colour);
  print_further_inputs(set, train, colour);
  if (parts.front().target.columns.empty()) return print_classes(set, parts, colour);
  const auto name = [&](std::size_t i) {
    return i < set.fields.target().names.size() ? printable(set.fields.target().names[i]) : std::to_string(i);
  };
  print_ranges(parts.front().target.columns, {"TARGET"}, name, colour);
}

}  // namespace

void add_inspect_options(Verb verb, InspectOptions& options) {
  verb.add_option("what", options.what, "A data set's name, an experiment's file, or a folder or file of your own data")
      .required()
      .type_name("DATASET|EXPERIMENT|FILE");
  verb.add_option("--path", options.path, "A folder to look in first").type_name("DIR");
  add_set_option(verb, options.settings);
  verb.add_option("--sheet", options.sheet, "Write the first images of each class or label as one PNG")
      .type_name("FILE.png");
  verb.add_flag("--augmented", options.augmented, "Augment the images on the sheet as the experiment's training does")
      .needs("--sheet");
  verb.add_option("--columns", options.columns, "Images of each class on the sheet")
      .capture_default_str()
      .range(1, 100)
      .type_name("N");
}

ExitCode inspect(const InspectOptions& options, bool json) {
  require_sheet_of_its_own(options);
  const Dataset set = load_dataset(config_of(options));
  if (!options.sheet.empty()) write_sheet(set, options);
  std::vector<Part> parts;
  for (const auto& [name, split] :
       {std::pair<const char*, const Split&>{"train", set.train}, {"validation", set.validation}, {"test", set.test}}) {
    if (&split == &set.validation && split.rows() == 0) continue;
    SplitSummary summary = summarize(split, set.fields);
    const FieldSummary target = summary.fields[set.fields.target().name];
    parts.push_back({name, split, std::move(summary), target});
  }
  if (!json) {
    print_report(set, parts);
    return ExitCode::done;
  }
  Json document = {{"name", set.name},
                   {"source", set.source},
                   {"fallback_of", set.fallback_of},
                   {"targets", set.fields.target().kind},
                   {"classes", set.fields.target().count()},
                   {"class_names", set.fields.target().names},
                   {"mean", set.fields.input().mean},
                   {"stddev", set.fields.input().stddev},
                   {"notes", set.notes}};
  for (const Part& part : parts) document[part.name] = split_json(set.fields, part.split, part.summary, part.target);
  print_json(document);
  return ExitCode::done;
}

}  // namespace gpunn::cli

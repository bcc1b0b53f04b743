#include "fields/kind.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>

namespace gpunn::fields {

#define GPUNN_FAMILY(name) const Kind& name##_kind();
#include "field_kinds.inc"
#undef GPUNN_FAMILY

Field Kind::target(std::vector<std::string> names) const {
  const auto columns = static_cast<int64_t>(names.size());
  return {.name = kTargetField,
          .role = Role::target,
          .kind = std::string(name()),
          .type = {DType::f32, {columns}},
          .names = std::move(names)};
}

std::string_view input_kind(const TensorType& sample) {
  if (sample.dtype == DType::i32 || sample.dtype == DType::i64) return "tokens";
  return sample.shape.size() == 3 ? "image" : "numbers";
}

TensorType taken_type(const Field& input) {
  TensorType type = input.type;
  if (input.kind.empty() || kind_of(input).is_normalised()) type.dtype = DType::f32;
  return type;
}

FieldValues Kind::blank(const Field& field, int64_t rows) const {
  FieldValues values{.type = field.type, .values = {}};
  values.type.shape.insert(values.type.shape.begin(), rows);
  values.values.resize(values.type.bytes());
  return values;
}

FieldSummary Kind::summarize(const Field&, const FieldValues&, int64_t) const { return {}; }

std::vector<RowGroup> Kind::groups(const Field&, const FieldValues&, std::size_t) const { return {}; }

std::optional<std::string> Kind::common_value(const Field&, const FieldValues&) const { return std::nullopt; }

std::unique_ptr<CellReader> Kind::cells(const CellTable& table, const ChosenColumns&) const {
  throw Error(table.file().string() + ": a table has no " + std::string(data()) + ", which the task learns from",
              ExitCode::usage);
}

FieldValues Kind::read(const ArraySource& array) const {
  throw Error(array.name() + ": an array is not read as " + std::string(data()) + ", which the task learns from",
              ExitCode::usage);
}

namespace {

std::vector<const Kind*>& known_kinds() {
  static std::vector<const Kind*> all = {
#define GPUNN_FAMILY(name) &name##_kind(),
#include "field_kinds.inc"
#undef GPUNN_FAMILY
  };
  return all;
}

}  // namespace

const std::vector<const Kind*>& kinds() { return known_kinds(); }

void add(const Kind& kind) {
  if (std::ranges::find(kinds(), kind.name(), &Kind::name) != kinds().end()) {
    throw Error("there is a kind of field '" + std::string(kind.name()) + "' already; choose another name",
                ExitCode::usage);
  }
  known_kinds().push_back(&kind);
}

const Kind& find(std::string_view name) {
  std::vector<std::string> names;
  for (const Kind* kind : kinds()) {
    if (kind->name() == name) return *kind;
    names.emplace_back(kind->name());
  }
  throw Error("unknown kind of field '" + std::string(name) + "'" + did_you_mean_or_list(name, names), ExitCode::usage);
}

}  // namespace gpunn::fields

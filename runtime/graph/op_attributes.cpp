#include "graph/op_attributes.hpp"

#include <gpunn/error.hpp>
#include <gpunn/op_ranges.hpp>
#include <gpunn/ops.h>
#include <gpunn/words.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <utility>

#include "graph/output_types.hpp"

namespace gpunn::eager {

std::string_view name_of(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::flag:
      return "flag";
    case AttributeKind::integer:
      return "integer";
    case AttributeKind::number:
      return "number";
    case AttributeKind::pair:
      return "pair";
    case AttributeKind::numbers:
      return "numbers";
    case AttributeKind::list:
      return "list";
    case AttributeKind::axes:
      return "axes";
    case AttributeKind::axis:
      return "axis";
    case AttributeKind::elements:
      return "elements";
    case AttributeKind::choice:
      return "choice";
    case AttributeKind::dtype:
      return "dtype";
  }
  return "?";
}

}  // namespace gpunn::eager

namespace gpunn::graph {

using eager::AttributeInfo;
using eager::AttributeKind;
using eager::AttributeValue;
using eager::NamedAttribute;

namespace {

// --- Values ---

// What does not fit an attribute; the caller adds its name.
class BadValue : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

double as_number(const AttributeValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* number = std::get_if<int64_t>(&value)) return static_cast<double>(*number);
  throw BadValue("must be a number");
}

int64_t as_integer(const AttributeValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  throw BadValue("must be an integer");
}

template <class Int>
Int narrow(int64_t value) {
  if constexpr (std::is_same_v<Int, uint64_t>) {
    return static_cast<uint64_t>(value);  // a seed: any 64 bits
  } else {
    if (value < int64_t{std::numeric_limits<Int>::min()} || value > int64_t{std::numeric_limits<Int>::max()}) {
      throw BadValue(std::to_string(value) + " is too large");
    }
    return static_cast<Int>(value);
  }
}

std::vector<int64_t> as_integers(const AttributeValue& value) {
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) return *list;
  if (const auto* list = std::get_if<std::vector<double>>(&value); list != nullptr && list->empty()) return {};
  throw BadValue("must be a list of integers");
}

template <class Member>
void write_scalar(void* to, const AttributeValue& value) {
  Member member;
  if constexpr (std::is_floating_point_v<Member>) {
    member = static_cast<Member>(as_number(value));
  } else {
    member = narrow<Member>(as_integer(value));
  }
  std::memcpy(to, &member, sizeof(member));
}

void write_flag(void* to, const AttributeValue& value) {
  const auto* flag = std::get_if<bool>(&value);
  if (flag == nullptr) throw BadValue("must be true or false");
  const int32_t member = *flag ? 1 : 0;
  std::memcpy(to, &member, sizeof(member));
}

void write_pair(void* to, const AttributeValue& value) {
  std::vector<int64_t> given;
  if (const auto* one = std::get_if<int64_t>(&value)) given = {*one, *one};
  if (given.empty()) given = as_integers(value);
  if (given.size() != 2) throw BadValue("must be two integers, for rows and columns, or one for both");
  const int32_t members[2] = {narrow<int32_t>(given[0]), narrow<int32_t>(given[1])};
  std::memcpy(to, members, sizeof(members));
}

void write_numbers(void* to, const AttributeValue& value) {
  std::vector<double> given;
  if (const auto* list = std::get_if<std::vector<double>>(&value)) given = *list;
  if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) given = {list->begin(), list->end()};
  if (given.empty()) given = {as_number(value), as_number(value)};
  if (given.size() != 2) throw BadValue("must be two numbers, for rows and columns, or one for both");
  const float members[2] = {static_cast<float>(given[0]), static_cast<float>(given[1])};
  std::memcpy(to, members, sizeof(members));
}

template <class Element>
void write_list(void* to, const AttributeValue& value) {
  const std::vector<int64_t> given = as_integers(value);
  if (given.size() > GPUNN_MAX_RANK) {
    throw BadValue("has " + std::to_string(given.size()) + " entries; tensors have at most 8 dimensions");
  }
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto element = narrow<Element>(given[i]);
    std::memcpy(static_cast<std::byte*>(to) + i * sizeof(Element), &element, sizeof(Element));
  }
}

void write_axes(void* to, const AttributeValue& value) {
  uint32_t mask = 0;
  for (const int64_t axis : as_integers(value)) {
    if (axis < 0 || axis >= GPUNN_MAX_RANK) {
      throw BadValue("names dimension " + std::to_string(axis) + "; dimensions are counted from 0 to 7");
    }
    mask |= 1U << static_cast<unsigned>(axis);
  }
  std::memcpy(to, &mask, sizeof(mask));
}

// The place of a word in a list, as the enumerations of op_attrs.h count.
template <const auto& words>
void write_choice(void* to, const AttributeValue& value) {
  const auto* word = std::get_if<std::string>(&value);
  const std::vector<std::string> known(std::begin(words), std::end(words));
  const auto found = word == nullptr ? known.end() : std::ranges::find(known, *word);
  if (found == known.end()) {
    throw BadValue(word == nullptr ? "must be a word" + did_you_mean_or_list("", known)
                                   : "'" + *word + "' is none of its words" + did_you_mean_or_list(*word, known));
  }
  const auto member = static_cast<int32_t>(found - known.begin());
  std::memcpy(to, &member, sizeof(member));
}

void write_dtype(void* to, const AttributeValue& value) {
  const auto* word = std::get_if<std::string>(&value);
  std::vector<std::string> known;
  for (const ops::Dtype& one : ops::kDtypes) {
    known.emplace_back(one.name);
    if (word != nullptr && *word == one.name) return static_cast<void>(std::memcpy(to, &one.id, sizeof(one.id)));
  }
  throw BadValue(word == nullptr ? "must be the name of a dtype" + did_you_mean_or_list("", known)
                                 : "there is no dtype '" + *word + "'" + did_you_mean_or_list(*word, known));
}

// --- Text ---

template <class Element>
Element element_at(const void* member, std::size_t i) {
  Element element;
  std::memcpy(&element, static_cast<const std::byte*>(member) + i * sizeof(Element), sizeof(Element));
  return element;
}

template <class Element>
std::string elements_text(const void* member, std::size_t count, const char* between) {
  std::ostringstream text;
  for (std::size_t i = 0; i < count; ++i) text << (i == 0 ? "" : between) << element_at<Element>(member, i);
  return text.str();
}

// A member of one element or several, as people write it.
template <class Element>
std::string text_of(const AttributeField& field, const void* member, std::size_t rank) {
  const AttributeInfo& info = field.info;
  switch (info.kind) {
    case AttributeKind::flag:
      return (element_at<Element>(member, 0) != 0 ? "" : "no ") + info.name;
    case AttributeKind::pair:
    case AttributeKind::numbers:
      return info.name + " " + elements_text<Element>(member, 2, "x");
    case AttributeKind::list:
      return info.name + " [" + elements_text<Element>(member, std::min<std::size_t>(rank, GPUNN_MAX_RANK), ", ") + "]";
    case AttributeKind::axes: {
      std::string axes;
      for (unsigned axis = 0; axis < GPUNN_MAX_RANK; ++axis) {
        if ((element_at<uint32_t>(member, 0) >> axis & 1) != 0)
          axes += (axes.empty() ? "" : ", ") + std::to_string(axis);
      }
      return info.name + " [" + axes + "]";
    }
    case AttributeKind::choice: {
      const auto word = static_cast<std::size_t>(element_at<Element>(member, 0));
      return info.name + " " + (word < info.choices.size() ? info.choices[word] : "?");
    }
    case AttributeKind::dtype:
      for (const ops::Dtype& one : ops::kDtypes) {
        if (one.id == element_at<int32_t>(member, 0)) return info.name + " " + std::string(one.name);
      }
      return info.name + " ?";
    case AttributeKind::integer:
    case AttributeKind::number:
    case AttributeKind::axis:
    case AttributeKind::elements:
      return info.name + " " + elements_text<Element>(member, 1, "");
  }
  return {};
}

constexpr std::string_view kActivations[] = {"none", "relu"};
constexpr std::string_view kUpsamplings[] = {"nearest", "bilinear"};
constexpr std::string_view kReductions[] = {"sum", "mean", "max"};

// --- Rows ---

// The words of op_attrs.inc.
namespace rows {

// How a caller gives an attribute.
struct Form {
  AttributeKind kind;
  std::span<const std::string_view> words = {};
  void (*write_word)(void*, const AttributeValue&) = nullptr;
  std::string_view shown = {};  // the caller's name for it, where that is not the member's
};
constexpr Form flag{AttributeKind::flag}, integer{AttributeKind::integer}, number{AttributeKind::number},
    pair{AttributeKind::pair}, numbers{AttributeKind::numbers}, list{AttributeKind::list}, axes{AttributeKind::axes},
    axis{AttributeKind::axis}, elements{AttributeKind::elements}, dtype{AttributeKind::dtype},
    shape{.kind = AttributeKind::list, .shown = "shape"},
    activation{AttributeKind::choice, kActivations, write_choice<kActivations>},
    upsampling{AttributeKind::choice, kUpsamplings, write_choice<kUpsamplings>},
    reduction{AttributeKind::choice, kReductions, write_choice<kReductions>};

// Where a value comes from that the caller leaves out.
struct Default {
  std::optional<AttributeValue> value = {};
  std::string_view same_as = {};
  Default() = default;
  template <class T>
  Default(T given) requires(!std::is_same_v<T, const char*>) : value(given) {}
  Default(int given) : value(int64_t{given}) {}
  Default(const char* given) : value(std::string(given)) {}
};
const Default required;
constexpr bool no = false, yes = true;
constexpr double infinity = std::numeric_limits<double>::infinity();
Default same_as(std::string_view name) {
  Default result;
  result.same_as = name;
  return result;
}

using Ops = std::vector<int32_t>;
const Ops all;
template <class... Ids>
Ops of(Ids... ids) {
  return {static_cast<int32_t>(ids)...};
}

template <class Element>
auto writer(const Form& form) -> void (*)(void*, const AttributeValue&) {
  switch (form.kind) {
    case AttributeKind::flag:
      return write_flag;
    case AttributeKind::pair:
      return write_pair;
    case AttributeKind::numbers:
      return write_numbers;
    case AttributeKind::axes:
      return write_axes;
    case AttributeKind::dtype:
      return write_dtype;
    case AttributeKind::choice:
      return form.write_word;
    case AttributeKind::list:
      if constexpr (std::is_integral_v<Element>) return write_list<Element>;
      return nullptr;
    case AttributeKind::integer:
    case AttributeKind::number:
    case AttributeKind::axis:
    case AttributeKind::elements:
      return write_scalar<Element>;
  }
  return nullptr;
}

template <class Element>
AttributeField field(std::string_view member, std::size_t offset, std::size_t bytes, const Form& form,
                     const char* range, const Default& fallback, const char* help, const Ops& ops) {
  // Callers may count a dimension from the end, and -1 elements are all.
  const bool counted = form.kind == AttributeKind::axis || form.kind == AttributeKind::elements;
  const std::string limits = counted ? std::string() : ops::Range(range).text();
  AttributeInfo info{.name = std::string(form.shown.empty() ? member : form.shown),
                     .kind = form.kind,
                     .help = help + (limits.empty() ? "" : "; " + limits),
                     .range = range,
                     .fallback = fallback.value,
                     .same_as = std::string(fallback.same_as),
                     .choices = {form.words.begin(), form.words.end()}};
  return {.info = std::move(info),
          .member = member,
          .offset = offset,
          .bytes = bytes,
          .write = writer<Element>(form),
          .text = text_of<Element>,
          .only_of = ops};
}

}  // namespace rows

std::vector<AttributeTable> make_tables() {
  using namespace rows;
  std::vector<AttributeTable> tables;
#define GPUNN_ATTRS(struct_name) \
  {                              \
    using Struct = struct_name;  \
    AttributeTable& table = tables.emplace_back(AttributeTable{.name = #struct_name, .bytes = sizeof(Struct)});
#define GPUNN_ATTR(type, member, extent, kind, range, fallback, help, ops) \
  table.fields.push_back(                                                  \
      field<type>(#member, offsetof(Struct, member), sizeof(Struct::member), kind, range, fallback, help, ops));
#define GPUNN_UNNAMED(type, member) \
  if (std::string_view(#member) == "rank") table.rank_offset = offsetof(Struct, member);
#define GPUNN_ATTRS_END(name) }
#include <gpunn/op_attrs.inc>
#undef GPUNN_ATTRS
#undef GPUNN_ATTR
#undef GPUNN_UNNAMED
#undef GPUNN_ATTRS_END
  return tables;
}

// The structs by the ops that have them.
const std::map<int32_t, const AttributeTable*>& tables_by_op() {
  static const std::map<int32_t, const AttributeTable*> result = [] {
    const std::vector<std::pair<int32_t, std::string_view>> structs{
#define GPUNN_OP(name, id, attributes, signature, summary) {id, #attributes},
#include <gpunn/op_list.inc>
#undef GPUNN_OP
    };
    std::map<int32_t, const AttributeTable*> by_op;
    for (const auto& [op, name] : structs) {
      const auto found = std::ranges::find(attribute_tables(), name, &AttributeTable::name);
      if (found != attribute_tables().end()) by_op[op] = &*found;
    }
    return by_op;
  }();
  return result;
}

}  // namespace

const std::vector<AttributeTable>& attribute_tables() {
  static const std::vector<AttributeTable> tables = make_tables();
  return tables;
}

const AttributeTable* attribute_table(int32_t op) {
  const auto found = tables_by_op().find(op);
  return found == tables_by_op().end() ? nullptr : found->second;
}

std::vector<const AttributeField*> attribute_fields(int32_t op) {
  std::vector<const AttributeField*> result;
  const AttributeTable* const found = attribute_table(op);
  if (found == nullptr) return result;
  for (const AttributeField& field : found->fields) {
    if (field.only_of.empty() || std::ranges::count(field.only_of, op) != 0) result.push_back(&field);
  }
  return result;
}

namespace {

// The value of a field: the given one, or its default; nullptr where there is none.
const AttributeValue* value_of(const AttributeField& field, std::span<const NamedAttribute> values) {
  for (const std::string& name : {field.info.name, field.info.same_as}) {
    const auto given = std::ranges::find(values, name, &NamedAttribute::first);
    if (given != values.end()) return &given->second;
  }
  return field.info.fallback ? &*field.info.fallback : nullptr;
}

}  // namespace

Attributes attributes_of(int32_t op, std::string_view op_name, std::span<const NamedAttribute> values) {
  const std::vector<const AttributeField*> fields = attribute_fields(op);
  const auto fail = [&](const std::string& what) { throw Error(std::string(op_name) + ": " + what, ExitCode::usage); };
  std::vector<std::string> names;
  for (const AttributeField* field : fields) names.push_back(field->info.name);
  for (const auto& [name, value] : values) {
    if (std::ranges::count(names, name) != 0) continue;
    fail(names.empty() ? "has no attributes; found '" + name + "'"
                       : "has no attribute '" + name + "'" + did_you_mean_or_list(name, names));
  }
  const AttributeTable* const layout = attribute_table(op);
  if (layout == nullptr) return {};
  std::vector<std::byte> bytes(layout->bytes);
  std::optional<std::size_t> rank;
  for (const AttributeField* field : fields) {
    const AttributeInfo& info = field->info;
    const AttributeValue* const value = value_of(*field, values);
    if (value == nullptr) fail("the attribute '" + info.name + "' is missing: " + info.help);
    try {
      field->write(bytes.data() + field->offset, *value);
    } catch (const BadValue& bad) {
      fail("the attribute '" + info.name + "' " + bad.what());
    }
    if (info.kind != AttributeKind::list) continue;
    const std::size_t entries = as_integers(*value).size();
    if (rank && *rank != entries) {
      fail("the attribute '" + info.name + "' has " + std::to_string(entries) + " entries, the list before it " +
           std::to_string(*rank));
    }
    rank = entries;
  }
  if (layout->rank_offset != 0) {
    const auto member = static_cast<int32_t>(rank.value_or(0));
    std::memcpy(bytes.data() + layout->rank_offset, &member, sizeof(member));
  }
  return Attributes::of_struct(std::move(bytes));
}

std::string attributes_text(int32_t op, const Attributes& attributes) {
  const AttributeTable* const layout = attribute_table(op);
  if (layout == nullptr || attributes.data() == nullptr) return {};
  std::vector<std::byte> bytes(layout->bytes);
  std::memcpy(bytes.data(), attributes.data(), std::min(bytes.size(), attributes.size()));
  const auto rank =
      layout->rank_offset == 0 ? 0 : static_cast<std::size_t>(element_at<int32_t>(&bytes[layout->rank_offset], 0));
  const std::vector<const AttributeField*> fields = attribute_fields(op);
  const auto is_default = [&](const AttributeField& field) {
    std::vector<std::byte> value(field.bytes);
    if (field.info.fallback) field.write(value.data(), *field.info.fallback);
    const auto other = std::ranges::find(fields, field.info.same_as, [](const auto* one) { return one->info.name; });
    if (other != fields.end()) std::memcpy(value.data(), &bytes[(*other)->offset], field.bytes);
    if (!field.info.fallback && other == fields.end()) return false;
    return std::memcmp(value.data(), &bytes[field.offset], field.bytes) == 0;
  };
  std::string text;
  for (const AttributeField* field : fields) {
    if (is_default(*field)) continue;
    text += (text.empty() ? "" : ", ") + field->text(*field, &bytes[field->offset], rank);
  }
  return text;
}

}  // namespace gpunn::graph

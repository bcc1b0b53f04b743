#include "config/yaml_syntax.hpp"

#include <algorithm>
#include <string_view>

namespace gpunn::config {

namespace {

namespace msg = YAML::ErrorMsg;

// A message of yaml-cpp, or what it begins with.
struct Fault {
  const char* of_parser;
  std::string_view text;
};

constexpr std::string_view kIndentation = "this continues neither the map nor the list above it; check the indentation";
constexpr std::string_view kAnchor =
    "'*' and '&' begin the name of an anchor; quote a value that begins with one: '*.png'";
constexpr std::string_view kEscape =
    "unknown escape in double quotes; in single quotes a backslash is itself: 'C:\\data'";
constexpr std::string_view kBlockScalar = "only '+', '-' or an indentation of 1 to 9 may follow '|' or '>'";

const Fault kFaults[] = {
    {msg::END_OF_MAP_FLOW, "a '}' or a ',' is missing before this"},
    {msg::END_OF_SEQ_FLOW, "a ']' or a ',' is missing before this"},
    {msg::FLOW_END, "this closes a bracket that was not opened"},
    {msg::END_OF_MAP, kIndentation},
    {msg::END_OF_SEQ, kIndentation},
    {msg::BLOCK_ENTRY, "a list item is not allowed here; each '- ' begins a line of its own, all in one column"},
    {msg::MAP_KEY, "a key is not allowed here; check the indentation"},
    {msg::MAP_VALUE, "a second ': ' in one line; quote a value that has one: 'a: b'"},
    {msg::TAB_IN_INDENTATION, "a tab in the indentation, which is made of spaces"},
    {msg::UNKNOWN_TOKEN, "a value can't begin with a tab, '@', '`' or '%'; quote it"},
    {msg::EOF_IN_SCALAR, "the file ends within quotes"},
    {msg::DOC_IN_SCALAR, "'---' or '...' within quotes"},
    {msg::INVALID_ESCAPE, kEscape},
    {msg::INVALID_HEX, kEscape},
    {msg::INVALID_UNICODE, kEscape},
    {msg::UNKNOWN_ANCHOR, kAnchor},
    {msg::ALIAS_NOT_FOUND, kAnchor},
    {msg::ANCHOR_NOT_FOUND, kAnchor},
    {msg::CHAR_IN_ALIAS, kAnchor},
    {msg::CHAR_IN_ANCHOR, kAnchor},
    {msg::ALIAS_CONTENT, kAnchor},
    {msg::CHAR_IN_BLOCK, kBlockScalar},
    {msg::ZERO_INDENT_IN_BLOCK, kBlockScalar},
};

}  // namespace

std::string yaml_syntax_fault(const YAML::Exception& error) {
  const auto* const fault =
      std::ranges::find_if(kFaults, [&](const Fault& row) { return error.msg.starts_with(row.of_parser); });
  return std::string(fault == std::end(kFaults) ? "this can't be read; quote it if it is meant as text" : fault->text);
}

}  // namespace gpunn::config

#include "config/yaml_tree.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "common/escape.hpp"
#include "common/text.hpp"
#include "config/diagnostics.hpp"
#include "config/yaml_syntax.hpp"

namespace gpunn::config {

namespace {

constexpr std::size_t kLongestShown = 60;

// Builds the tree from yaml-cpp's events. yaml-cpp's own tree keeps the first of two equal keys in silence, shares the
// nodes that aliases name, so that walking it can take forever, and does not tell a quoted 5 from a bare one.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& file) : file_(file) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    place(node_at(mark, YamlNode::Kind::null), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "an alias to something that contains it");
    count(mark, found->second.nodes);
    place(found->second.node, YAML::NullAnchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = node_at(mark, YamlNode::Kind::scalar);
    if (tag != "?" && tag != "!" && !tag.empty()) fail(mark, "tags such as " + in_quotes(tag) + " are not supported");
    node.quoted = tag == "!";
    node.scalar = value;
    place(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, YamlNode::Kind::map);
  }
  void OnMapEnd() override { close(); }

  YamlNode take_root() { return std::move(root_); }
  const Diagnostics& duplicates() const { return duplicates_; }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor = YAML::NullAnchor;
    std::size_t nodes_before = 0;
    bool has_key = false;
    std::string key;
    SourceLocation key_where;
    std::map<std::string, int> key_lines;
  };
  struct Anchored {
    YamlNode node;
    std::size_t nodes = 0;
  };

  SourceLocation location(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  [[noreturn]] void fail(const YAML::Mark& mark, std::string message) const {
    fail_at(location(mark), std::move(message));
  }

  void count(const YAML::Mark& mark, std::size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > kMostYamlNodes) {
      fail(mark, "more than " + std::to_string(kMostYamlNodes) + " values, aliases counted as often as they are used");
    }
  }

  YamlNode node_at(const YAML::Mark& mark, YamlNode::Kind kind) {
    count(mark, 1);
    YamlNode node;
    node.kind = kind;
    node.where = location(mark);
    return node;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlNode::Kind kind) {
    if (tag != "?" && tag != "!" && !tag.empty()) fail(mark, "tags such as " + in_quotes(tag) + " are not supported");
    if (stack_.size() >= kDeepestYaml) {
      fail(mark, "nested more than " + std::to_string(kDeepestYaml) + " levels deep");
    }
    Open frame;
    frame.nodes_before = nodes_;
    frame.node = node_at(mark, kind);
    frame.anchor = anchor;
    stack_.push_back(std::move(frame));
  }

  void close() {
    Open frame = std::move(stack_.back());
    stack_.pop_back();
    if (frame.anchor != YAML::NullAnchor) anchors_[frame.anchor] = {frame.node, nodes_ - frame.nodes_before};
    place(std::move(frame.node), YAML::NullAnchor);
  }

  // Puts a finished node where it belongs: a list's next item, a map's next key or value, or the root.
  void place(YamlNode node, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = {node, 1};
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == YamlNode::Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      take_key(parent, node);
    } else {
      parent.has_key = false;
      if (parent.key_lines.emplace(parent.key, parent.key_where.line).second) {
        parent.node.entries.push_back({std::move(parent.key), parent.key_where, std::move(node)});
      } else {
        duplicates_.add(parent.key_where, "duplicate key " + in_quotes(parent.key) + "; it is already given in line " +
                                              std::to_string(parent.key_lines.at(parent.key)));
      }
    }
  }

  static void take_key(Open& parent, YamlNode& node) {
    if (node.kind != YamlNode::Kind::scalar) {
      fail_at(node.where, "a key must be a word, found " + describe(node));
    }
    parent.has_key = true;
    parent.key = std::move(node.scalar);
    parent.key_where = node.where;
  }

  const std::string& file_;
  YamlNode root_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  std::size_t nodes_ = 0;
  Diagnostics duplicates_;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

YamlNode parse_yaml(std::string_view text, const std::string& file) {
  if (text.size() > kLargestYamlFile) {
    fail_at({file, 0, 0}, "larger than the " + human_bytes(kLargestYamlFile) + " allowed");
  }
  TreeBuilder builder(file);
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) fail_at({file, 0, 0}, "the file is empty");
    YamlNode root = builder.take_root();
    builder.duplicates().throw_if_any();
    TreeBuilder second(file);
    if (parser.HandleNextDocument(second)) {
      fail_at(second.take_root().where, "a second YAML document; only one is expected");
    }
    return root;
  } catch (const YAML::Exception& error) {
    const bool placed = !error.mark.is_null();
    fail_at({file, placed ? error.mark.line + 1 : 0, placed ? error.mark.column + 1 : 0},
            "YAML syntax: " + yaml_syntax_fault(error));
  }
}

std::string yaml_text(const std::string& text) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  const bool starts_well = !text.empty() && !(text.front() >= '0' && text.front() <= '9');
  static const std::vector<std::string> kReserved = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
  std::string lower = text;
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (starts_well && std::all_of(text.begin(), text.end(), is_plain) &&
      std::find(kReserved.begin(), kReserved.end(), lower) == kReserved.end()) {
    return text;
  }
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(c)));
      result += escape.data();
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::list:
      return "a list";
    case YamlNode::Kind::map:
      return "a map";
    case YamlNode::Kind::scalar:
      break;
  }
  std::string shown = node.scalar;
  if (shown.size() > kLongestShown) shown = shown.substr(0, kLongestShown) + "...";
  return node.quoted ? "the text \"" + escaped(shown) + "\"" : in_quotes(shown);
}

}  // namespace gpunn::config

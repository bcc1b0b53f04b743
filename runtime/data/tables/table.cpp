#include "data/tables/table.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include <algorithm>
#include <utility>

#include "common/parse_number.hpp"
#include "common/text.hpp"

namespace gpunn::data {

using fields::number_of;
using fields::shown;

Table::Table(const std::filesystem::path& file, bool header, Delimiter delimiter)
    : file_(file),
      header_(header),
      delimiter_(delimiter),
      reader_(file, delimiter_of(delimiter)),
      work_("reading " + file.filename().string(), reader_.bytes(), WorkUnit::bytes) {
  if (!reader_.next(first_)) throw Error(file_.string() + ": the file has no lines; expected a CSV table");
  if (first_.size() < 2) {
    reader_.fail("expected two columns or more, of numbers and of classes, found one: " + shown(first_.front()) +
                 "; if the columns are not separated by a " + delimiter_word() + ", say so with data.delimiter");
  }
  for (std::size_t i = 0; i < first_.size(); ++i) columns_.push_back(header_ ? first_[i] : std::to_string(i));
  const auto is_number = [](const std::string& field) { return number_of(field).has_value(); };
  if (header_ && std::ranges::all_of(first_, is_number)) {
    reader_.fail("expected the names of the columns, found numbers alone; if the table has no such line, set " +
                 std::string("data.header: false"));
  }
}

std::string Table::delimiter_word() const {
  return delimiter_ == Delimiter::comma ? "comma" : (delimiter_ == Delimiter::tab ? "tab" : "semicolon");
}

std::string Table::column(std::size_t index) const {
  return header_ ? in_quotes(columns_[index]) : "number " + std::to_string(index);
}

std::size_t Table::find(const std::string& wanted, const char* key) const {
  const auto count = std::ranges::count(columns_, wanted);
  if (count > 1) reader_.fail("the column " + in_quotes(wanted) + " is there " + std::to_string(count) + " times");
  if (count == 1) return static_cast<std::size_t>(std::ranges::find(columns_, wanted) - columns_.begin());
  const std::optional<int64_t> number = parse_number<int64_t>(wanted);
  if (number && *number >= 0 && *number < static_cast<int64_t>(columns_.size())) {
    return static_cast<std::size_t>(*number);
  }
  reader_.fail("there is no column " + in_quotes(wanted) + " (" + key + ") among the " +
               std::to_string(columns_.size()) + did_you_mean_or_list(wanted, columns_));
}

bool Table::next(std::vector<std::string>& fields) {
  if (rows_ == 0 && !header_) {
    fields = std::move(first_);
  } else if (!reader_.next(fields)) {
    return false;
  }
  work_.reach(reader_.position());
  ++rows_;
  if (fields.size() != columns_.size()) {
    reader_.fail("expected " + std::to_string(columns_.size()) + " fields as in the first line, found " +
                 std::to_string(fields.size()));
  }
  return true;
}

void Table::refuse(const std::string& field, std::size_t index, const std::string& expected,
                   const std::string& advice) const {
  const std::string found = field.empty() ? "nothing" : shown(field);
  const bool names = !header_ && at_first_row();
  reader_.fail("column " + column(index) + ": expected " + expected + ", found " + found + "; " + advice +
               (names ? "; if this line has names, leave data.header out" : ""));
}

void require_same_columns(const std::filesystem::path& test, const std::vector<std::string>& of_test,
                          const std::filesystem::path& train, const std::vector<std::string>& of_train) {
  if (of_test == of_train) return;
  throw Error(test.string() + ": expected the " + std::to_string(of_train.size()) + " columns of " + train.string() +
              " (" + shown(join(of_train, ", ")) + "), found " + std::to_string(of_test.size()) + " (" +
              shown(join(of_test, ", ")) + ")");
}

}  // namespace gpunn::data

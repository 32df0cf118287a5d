//===- Npz.cpp - Reader of NumPy archives ---------------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Zip central directory, zip64 fields as numpy writes them, inflate through
// zlib, and the .npy header (a Python literal).
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Npz.h"

#include "runtime/io/Json.h"

#include <cstring>
#include <zlib.h>

using namespace zrt;

/// Deflate cannot pack better than this: a bomb's claim is refused before
/// memory is allocated for it.
static constexpr uint64_t maxDeflateRatio = 1032;
/// Longest .npy header that is believed; numpy's own default limit is 10,000.
static constexpr size_t maxNpyHeader = 10000;

/// A little-endian number of N bytes.
template <unsigned N>
static uint64_t little(const uint8_t *bytes) {
  uint64_t value = 0;
  for (unsigned i = N; i-- > 0;)
    value = value << 8 | bytes[i];
  return value;
}

void NpzFile::fail(const std::string &message) const {
  throw IoError(filePath, "npz archive " + message);
}

NpzFile::NpzFile(std::unique_ptr<MappedFile> mapped)
    : TensorFile(mapped->path()), file(std::move(mapped)) {
  readDirectory();
}

void NpzFile::readDirectory() {
  // The end record has 22 bytes and a comment of up to 65535 behind it.
  const uint8_t *data = file->data();
  if (file->size() < 22)
    fail("is truncated");
  size_t end = file->size() - 22;
  size_t lowest = end > 65535 ? end - 65535 : 0;
  while (std::memcmp(data + end, "PK\5\6", 4) ||
         end + 22 + little<2>(data + end + 20) != file->size())
    if (end-- == lowest)
      fail("is truncated: it has no end record");
  uint64_t count = little<2>(data + end + 10);
  uint64_t offset = little<4>(data + end + 16);
  bool zip64 = end >= 20 && !std::memcmp(data + end - 20, "PK\6\7", 4);
  if (zip64) {
    uint64_t record = little<8>(data + end - 20 + 8);
    if (record > end || end - record < 56 ||
        std::memcmp(data + record, "PK\6\6", 4))
      fail("has a bad zip64 end record");
    count = little<8>(data + record + 32);
    offset = little<8>(data + record + 48);
  }
  for (uint64_t i = 0; i < count; ++i)
    addMember(offset, offset);
}

/// Replaces the sizes that are all ones by those of the zip64 field, which
/// holds only the ones that are needed, in this order.
static bool readZip64(const uint8_t *extra, size_t size,
                      std::initializer_list<uint64_t *> values) {
  for (size_t at = 0; at + 4 <= size;) {
    size_t id = little<2>(extra + at), length = little<2>(extra + at + 2);
    at += 4;
    if (length > size - at)
      return false;
    size_t used = 0;
    for (uint64_t *value : values) {
      if (id != 1 || *value != 0xFFFFFFFF)
        continue;
      if (used + 8 > length)
        return false;
      *value = little<8>(extra + at + used);
      used += 8;
    }
    at += length;
  }
  return true;
}

void NpzFile::addMember(uint64_t at, uint64_t &next) {
  if (at > file->size() || file->size() - at < 46 ||
      std::memcmp(file->data() + at, "PK\1\2", 4))
    fail("has a damaged directory");
  const uint8_t *entry = file->data() + at;
  size_t nameSize = little<2>(entry + 28), extraSize = little<2>(entry + 30);
  size_t total = 46 + nameSize + extraSize + little<2>(entry + 32);
  if (total > file->size() - at)
    fail("has a damaged directory");
  next = at + total;
  std::string name(reinterpret_cast<const char *>(entry) + 46, nameSize);
  std::string quoted = "member " + jsonQuote(name);
  Member member;
  member.storedBytes = little<4>(entry + 20);
  member.bytes = little<4>(entry + 24);
  member.checksum = uint32_t(little<4>(entry + 16));
  uint64_t offset = little<4>(entry + 42), method = little<2>(entry + 10);
  if (!readZip64(entry + 46 + nameSize, extraSize,
                 {&member.bytes, &member.storedBytes, &offset}))
    fail("has a damaged zip64 field in " + quoted);
  if (little<2>(entry + 8) & 1)
    fail("has the encrypted " + quoted);
  if (method != 0 && method != 8)
    fail("has compression method " + std::to_string(method) + " in " + quoted +
         ", expected stored or deflated");
  member.deflated = method == 8;
  if (name.size() < 5 || name.compare(name.size() - 4, 4, ".npy"))
    fail("has " + quoted + ", which is no .npy array");
  locate(member, offset, quoted);
  addTensor(name.substr(0, name.size() - 4), std::move(member));
}

/// Finds the bytes of a member behind its local header.
void NpzFile::locate(Member &member, uint64_t offset,
                     const std::string &quoted) {
  if (offset > file->size() || file->size() - offset < 30 ||
      std::memcmp(file->data() + offset, "PK\3\4", 4))
    fail("has a bad offset for " + quoted);
  const uint8_t *local = file->data() + offset;
  uint64_t start = offset + 30 + little<2>(local + 26) + little<2>(local + 28);
  if (start > file->size() || member.storedBytes > file->size() - start)
    fail("is truncated in " + quoted);
  if (member.deflated ? member.bytes / maxDeflateRatio > member.storedBytes
                      : member.bytes != member.storedBytes)
    fail("claims an impossible size of " + std::to_string(member.bytes) +
         " bytes for " + quoted);
  member.stored = file->data() + start;
}

/// Inflates the first `size` bytes; false for damaged data.
static bool inflateFront(const uint8_t *source, uint64_t sourceSize,
                         uint8_t *target, uint64_t size) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return false;
  stream.next_in = const_cast<uint8_t *>(source);
  stream.next_out = target;
  constexpr uint64_t most = 1u << 30; // zlib counts in 32 bits
  int status = Z_OK;
  while (size > 0 && status == Z_OK) {
    uInt in = uInt(std::min(sourceSize, most)),
         out = uInt(std::min(size, most));
    stream.avail_in = in;
    stream.avail_out = out;
    status = inflate(&stream, Z_NO_FLUSH);
    sourceSize -= in - stream.avail_in;
    size -= out - stream.avail_out;
    if (in == stream.avail_in && out == stream.avail_out)
      break;
  }
  inflateEnd(&stream);
  return size == 0;
}

namespace {
/// Reads the dictionary of a .npy header: {'descr': '<f4', 'fortran_order':
/// False, 'shape': (3, 4), }.
class NpyHeader {
public:
  explicit NpyHeader(std::string_view text) : rest(text) {}

  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;

  bool parse() {
    unsigned seen = 0;
    std::string key;
    if (!take('{'))
      return false;
    while (!take('}')) {
      if (!quoted(key) || !take(':'))
        return false;
      unsigned bit = key == "descr"           ? 1
                     : key == "fortran_order" ? 2
                     : key == "shape"         ? 4
                                              : 0;
      bool value = bit == 1   ? quoted(descr)
                   : bit == 2 ? boolean(fortran)
                              : tuple();
      if (!value || !bit || (seen & bit))
        return false;
      seen |= bit;
      take(',');
    }
    skip();
    return seen == 7 && rest.empty();
  }

private:
  void skip() {
    size_t at = rest.find_first_not_of(" \n");
    rest.remove_prefix(at == rest.npos ? rest.size() : at);
  }
  bool take(char c) {
    skip();
    if (rest.empty() || rest[0] != c)
      return false;
    rest.remove_prefix(1);
    return true;
  }
  bool quoted(std::string &value) {
    skip();
    char quote = take('\'') ? '\'' : '"';
    if (quote == '"' && !take('"'))
      return false;
    size_t end = rest.find(quote);
    if (end == rest.npos)
      return false;
    value = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return true;
  }
  bool boolean(bool &value) {
    skip();
    value = rest.substr(0, 4) == "True";
    if (!value && rest.substr(0, 5) != "False")
      return false;
    rest.remove_prefix(value ? 4 : 5);
    return true;
  }
  bool tuple() {
    if (!take('('))
      return false;
    while (!take(')')) {
      int64_t dim = 0;
      size_t digits = 0;
      for (skip(); !rest.empty() && rest[0] >= '0' && rest[0] <= '9';
           ++digits) {
        if (__builtin_mul_overflow(dim, 10, &dim) ||
            __builtin_add_overflow(dim, rest[0] - '0', &dim))
          return false;
        rest.remove_prefix(1);
      }
      if (!digits)
        return false;
      shape.push_back(dim);
      take(',');
    }
    return true;
  }

  std::string_view rest;
};
} // namespace

static std::optional<DataType> typeOf(const std::string &descr) {
  static constexpr std::pair<const char *, DataType> types[] = {
      {"<f4", DataType::F32}, {"<f8", DataType::F64}, {"<f2", DataType::F16},
      {"<i8", DataType::I64}, {"<i4", DataType::I32}, {"<i2", DataType::I16},
      {"|i1", DataType::I8},  {"|u1", DataType::U8},  {"|b1", DataType::Bool},
      {"<u2", DataType::U16}, {"<u4", DataType::U32}, {"<u8", DataType::U64}};
  for (auto [text, type] : types)
    if (descr == text)
      return type;
  return std::nullopt;
}

void NpzFile::addTensor(const std::string &name, Member member) {
  std::string array = "array " + jsonQuote(name);
  // Only the header is inflated now; the values wait until they are asked for.
  size_t front = size_t(std::min<uint64_t>(member.bytes, maxNpyHeader + 12));
  std::vector<uint8_t> head(front);
  if (!member.deflated)
    head.assign(member.stored, member.stored + front);
  else if (!inflateFront(member.stored, member.storedBytes, head.data(), front))
    fail("has damaged data in " + array);
  if (front < 12 || std::memcmp(head.data(), "\x93NUMPY", 6) || head[6] < 1 ||
      head[6] > 3)
    fail("has no .npy header in " + array);
  size_t fixed = head[6] == 1 ? 10 : 12;
  uint64_t length = head[6] == 1 ? little<2>(&head[8]) : little<4>(&head[8]);
  if (length > front - fixed)
    fail("has a .npy header of " + std::to_string(length) + " bytes in " +
         array + ", more than is there or than " +
         std::to_string(maxNpyHeader));
  NpyHeader header({reinterpret_cast<char *>(head.data()) + fixed, length});
  if (!header.parse())
    fail("has a damaged .npy header in " + array);
  auto type = typeOf(header.descr);
  if (!type)
    fail("has the dtype " + jsonQuote(header.descr) + " in " + array +
         ", which is not supported");
  if (header.fortran && header.shape.size() > 1)
    fail("has column-major " + array + ": save numpy.ascontiguousarray of it");
  auto bytes = tensorBytes(*type, header.shape);
  member.headerBytes = fixed + length;
  if (!bytes || *bytes != member.bytes - member.headerBytes)
    fail("has " + std::to_string(member.bytes - member.headerBytes) +
         " bytes in " + array + ", which do not fit " +
         describe(*type, header.shape));
  if (!infos.emplace(name, TensorInfo{*type, header.shape, *bytes}).second)
    fail("has " + array + " twice");
  members.emplace(name, std::move(member));
}

static uint32_t checksumOf(const uint8_t *data, uint64_t size) {
  return uint32_t(crc32_z(crc32_z(0, nullptr, 0), data, size));
}

const uint8_t *NpzFile::data(std::string_view name) {
  auto it = members.find(name);
  if (it == members.end())
    unknownTensor(name);
  Member &member = it->second;
  if (member.deflated && !member.verified) {
    member.inflated.resize(member.bytes);
    if (!inflateFront(member.stored, member.storedBytes, member.inflated.data(),
                      member.bytes))
      fail("has damaged data in array " + jsonQuote(name));
  }
  const uint8_t *values =
      member.deflated ? member.inflated.data() : member.stored;
  if (!member.verified && checksumOf(values, member.bytes) != member.checksum)
    fail("has a wrong checksum in array " + jsonQuote(name));
  member.verified = true;
  return values + member.headerBytes;
}

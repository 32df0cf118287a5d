//===- NpzTest.cpp - Tests of the .npz reader -----------------------------===//
//
// Part of the zero-opt project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Archives are put together by hand, so that each field of them can be wrong.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Npz.h"
#include "TestFiles.h"

#include <cstring>
#include <functional>
#include <zlib.h>

using namespace zrt;
using namespace zrt::test;

namespace {

struct Array {
  std::string name = "x.npy";
  std::string content;
  unsigned method = 0, flags = 0;
  bool zip64 = false;
};

std::string npy(const std::string &header, const std::string &values,
                int version = 1) {
  return std::string("\x93NUMPY") + char(version) + '\0' +
         little(header.size(), version == 1 ? 2 : 4) + header + values;
}

std::string npyOf(const std::string &descr, const std::string &shape,
                  const std::string &values,
                  const std::string &order = "False") {
  return npy("{'descr': '" + descr + "', 'fortran_order': " + order +
                 ", 'shape': " + shape + ", }   \n",
             values);
}

std::string deflated(const std::string &text) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(compressBound(text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
  stream.avail_in = uInt(text.size());
  stream.next_out = reinterpret_cast<Bytef *>(out.data());
  stream.avail_out = uInt(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// A zip archive as numpy.savez writes it.
std::string archive(const std::vector<Array> &arrays) {
  std::string bytes, directory;
  for (const Array &array : arrays) {
    std::string stored =
        array.method == 8 ? deflated(array.content) : array.content;
    uint64_t size = array.content.size(), packed = stored.size();
    uint32_t crc = uint32_t(crc32(
        0, reinterpret_cast<const Bytef *>(array.content.data()), uInt(size)));
    std::string sizes64 =
        little(1, 2) + little(16, 2) + little(size, 8) + little(packed, 8);
    std::string common = little(20, 2) + little(array.flags, 2) +
                         little(array.method, 2) + little(0, 4) +
                         little(crc, 4);
    std::string offset = little(bytes.size(), 4);
    // The local header has zip64 sizes always, as numpy forces them.
    bytes += "PK\3\4" + common + little(~0u, 4) + little(~0u, 4) +
             little(array.name.size(), 2) + little(sizes64.size(), 2) +
             array.name + sizes64 + stored;
    directory += "PK\1\2" + little(20, 2) + common;
    directory += array.zip64 ? little(~0u, 4) + little(~0u, 4)
                             : little(packed, 4) + little(size, 4);
    directory += little(array.name.size(), 2) +
                 little(array.zip64 ? sizes64.size() : 0, 2) + little(0, 2) +
                 little(0, 8) + offset + array.name;
    if (array.zip64)
      directory += sizes64;
  }
  std::string count = little(arrays.size(), 2);
  return bytes + directory + "PK\5\6" + little(0, 4) + count + count +
         little(directory.size(), 4) + little(bytes.size(), 4) + little(0, 2);
}

const std::string six = bytesOf<float>({1, 2, 3, 4, 5, 6});

class Npz : public FileTest {
protected:
  std::string verdict(const std::string &bytes) {
    std::string path = put("f.npz", bytes);
    return errorOf([&] {
      NpzFile file(path);
      for (const auto &[name, info] : file.tensors()) {
        std::vector<uint8_t> copy(info.bytes + 1);
        std::memcpy(copy.data(), file.data(name), info.bytes);
      }
    });
  }
};

TEST_F(Npz, ReadsStoredDeflatedAndZip64) {
  std::string content = npyOf("<f4", "(2, 3)", six);
  for (unsigned method : {0u, 8u})
    for (bool zip64 : {false, true}) {
      NpzFile file(put(
          "f.npz", archive({{"x.npy", content, method, 0, zip64},
                            {"labels.npy",
                             npyOf("<i8", "(2,)", bytesOf<int64_t>({4, -1})),
                             method, 0, zip64}})));
      ASSERT_TRUE(file.find("x"));
      EXPECT_EQ(describe(file.find("x")->type, file.find("x")->shape),
                "F32[2x3]");
      EXPECT_EQ(std::memcmp(file.data("x"), six.data(), six.size()), 0);
      EXPECT_EQ(integerAt(DataType::I64, file.data("labels"), 1), -1);
    }
}

TEST_F(Npz, ReadsArchivesWithAComment) {
  std::string bytes = archive({{"x.npy", npyOf("<f4", "(6,)", six)}});
  bytes.replace(bytes.size() - 2, 2, little(5, 2) + "hello");
  EXPECT_EQ(verdict(bytes), "");
}

TEST_F(Npz, ReadsScalarsAndLaterVersions) {
  EXPECT_EQ(verdict(archive({{"x.npy", npyOf("|u1", "()", "a")}})), "");
  EXPECT_EQ(verdict(archive({{"x.npy", npyOf("<f4", "(6,)", six, "True")}})),
            "");
  EXPECT_EQ(
      verdict(archive(
          {{"x.npy", npy("{\"descr\":'<f4','fortran_order':False,'shape':(6,)}",
                         six, 2)}})),
      "");
}

TEST_F(Npz, RefusesWhatIsMalformed) {
  std::string good = npyOf("<f4", "(6,)", six);
  auto only = [](std::string content) { return archive({{"x.npy", content}}); };
  auto edit = [&](size_t fromEnd, std::string bytes) {
    std::string text = archive({{"x.npy", good}});
    return text.replace(text.size() - fromEnd, bytes.size(), bytes);
  };
  // The directory entry of x.npy starts 46 + 5 + 22 bytes before the end.
  const size_t entry = 73;
  const struct {
    const char *why;
    std::string bytes;
    const char *message;
  } cases[] = {
      {"empty", "", "is truncated"},
      {"no end record", std::string(100, 'x'), "no end record"},
      {"directory beyond the file", edit(6, little(~0u, 4)),
       "damaged directory"},
      {"more entries than there are", edit(12, little(9, 2)),
       "damaged directory"},
      {"long name", edit(entry - 28, little(60000, 2)), "damaged directory"},
      {"encrypted", archive({{"x.npy", good, 0, 1}}), "encrypted member"},
      {"method 12", archive({{"x.npy", good, 12}}), "compression method 12"},
      {"not an array", archive({{"x.txt", good}}), "is no .npy array"},
      {"bad local offset", edit(entry - 42, little(~0u - 1, 4)), "bad offset"},
      {"stored size beyond the file", edit(entry - 20, little(1 << 30, 4)),
       "is truncated in"},
      {"sizes differ", edit(entry - 24, little(good.size() + 1, 4)),
       "impossible size"},
      {"zip64 without field", edit(entry - 24, little(~0u, 4)),
       "impossible size"},
      {"wrong checksum", edit(entry - 16, "abcd"), "wrong checksum"},
      {"twice", archive({{"x.npy", good}, {"x.npy", good}}),
       "array \"x\" twice"},
      {"empty member", only(""), "no .npy header"},
      {"no magic", only("NUMPY" + good), "no .npy header"},
      {"version 4", only(npy("{}", "", 4)), "no .npy header"},
      {"header beyond the member", only(good.substr(0, 20)),
       "a .npy header of"},
      {"huge header", only(npy(std::string(20000, ' '), "")),
       "header of 20000 bytes"},
      {"no dictionary", only(npy("[]", "")), "damaged .npy header"},
      {"code for a shape", only(npyOf("<f4", "(exit(),)", six)),
       "damaged .npy header"},
      {"negative shape", only(npyOf("<f4", "(-6,)", six)),
       "damaged .npy header"},
      {"shape overflows", only(npyOf("<f4", "(99999999999999999999,)", six)),
       "damaged .npy header"},
      {"product overflows", only(npyOf("<f4", "(4611686018427387904, 4)", six)),
       "do not fit"},
      {"key twice",
       only(npy("{'descr': '<f4', 'descr': '<f4', 'shape': (6,)}", six)),
       "damaged .npy header"},
      {"key missing", only(npy("{'descr': '<f4', 'shape': (6,)}", six)),
       "damaged .npy header"},
      {"unknown key",
       only(npy(
           "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'x': (1,)}",
           six)),
       "damaged .npy header"},
      {"short values", only(npyOf("<f4", "(7,)", six)),
       "24 bytes in array \"x\", which do not fit F32[7]"},
      {"objects", only(npyOf("|O", "(6,)", six)), "dtype \"|O\""},
      {"big endian", only(npyOf(">f4", "(6,)", six)), "dtype \">f4\""},
      {"column-major", only(npyOf("<f4", "(2, 3)", six, "True")),
       "column-major"},
  };
  for (const auto &test : cases) {
    std::string message = verdict(test.bytes);
    EXPECT_NE(message.find(test.message), message.npos)
        << test.why << ": expected '" << test.message << "', got '" << message
        << "'";
    EXPECT_EQ(message.find('\n'), message.npos) << test.why;
  }
}

TEST_F(Npz, BombsAreRefusedBeforeTheyAreInflated) {
  std::string bytes = archive({{"x.npy", npyOf("<f4", "(6,)", six), 8}});
  bytes.replace(bytes.size() - 73 + 24, 4, little(1u << 31, 4));
  EXPECT_NE(verdict(bytes).find("impossible size of 2147483648 bytes"),
            std::string::npos);
}

TEST_F(Npz, EveryCutIsRefusedAndEveryFlipHarmless) {
  for (unsigned method : {0u, 8u}) {
    std::string whole =
        archive({{"x.npy", npyOf("<f4", "(2, 3)", six), method}});
    ASSERT_EQ(verdict(whole), "");
    for (size_t size = 0; size < whole.size(); ++size)
      EXPECT_NE(verdict(whole.substr(0, size)), "") << size << " bytes";
    for (size_t at = 0; at < whole.size(); ++at)
      for (int bit : {0, 5}) {
        std::string flipped = whole;
        flipped[at] ^= char(1 << bit);
        verdict(flipped);
      }
  }
}

} // namespace

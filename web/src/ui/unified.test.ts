import { describe, expect, it } from 'vitest'
import { count, parseDiff, sideBySide, titleOf } from './unified'

const git = `diff --git a/cache.go b/cache.go
index 1111111..2222222 100644
--- a/cache.go
+++ b/cache.go
@@ -10,5 +10,6 @@ func (c *Cache) Get(
 	c.mu.Lock()
--- a comment in SQL
-	old()
+	new()
+++ counted
+	third()
 	return
 
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
index 1111111..0000000
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-last
\\ No newline at end of file
`

describe('unified diffs', () => {
  it('reads files, numbers and lines that look like headers', () => {
    const [cache, gone] = parseDiff(git)
    expect(parseDiff(git)).toHaveLength(2)
    expect([cache!.from, cache!.to, cache!.notes]).toEqual(['cache.go', 'cache.go', []])
    expect(cache!.hunks[0]!.heading).toBe('func (c *Cache) Get(')
    expect(cache!.hunks[0]!.lines).toEqual([
      { mark: 'same', text: '\tc.mu.Lock()', before: 10, after: 10 },
      { mark: 'remove', text: '-- a comment in SQL', before: 11 },
      { mark: 'remove', text: '\told()', before: 12 },
      { mark: 'add', text: '\tnew()', after: 11 },
      { mark: 'add', text: '++ counted', after: 12 },
      { mark: 'add', text: '\tthird()', after: 13 },
      { mark: 'same', text: '\treturn', before: 13, after: 14 },
      { mark: 'same', text: '', before: 14, after: 15 },
    ])
    expect([gone!.from, gone!.to]).toEqual(['gone.txt', ''])
    expect(gone!.hunks[0]!.lines).toEqual([{ mark: 'remove', text: 'last', before: 1, open: true }])
    expect(count([cache!, gone!])).toEqual({ added: 3, removed: 3 })
    expect([titleOf(cache!), titleOf(gone!)]).toEqual(['cache.go', 'gone.txt (deleted)'])
  })

  it('pairs what went with what came', () => {
    const rows = sideBySide(parseDiff(git)[0]!.hunks[0]!.lines)
    expect(rows.map(({ left, right }) => [left?.text, right?.text])).toEqual([
      ['\tc.mu.Lock()', '\tc.mu.Lock()'],
      ['-- a comment in SQL', '\tnew()'],
      ['\told()', '++ counted'],
      [undefined, '\tthird()'],
      ['\treturn', '\treturn'],
      ['', ''],
    ])
  })

  it('reads new, renamed and binary files', () => {
    const files = parseDiff(
      'diff --git a/n b/n\nnew file mode 100755\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n' +
        'diff --git a/p q b/r s\nsimilarity index 100%\nrename from p q\nrename to r s\n' +
        'diff --git a/b.png b/b.png\nBinary files a/b.png and b/b.png differ\n',
    )
    expect(files.map(titleOf)).toEqual(['n (new)', 'p q → r s', 'b.png'])
    expect(files[0]!.notes).toEqual(['new file mode 100755'])
    expect(files[2]!.notes).toEqual(['Binary files a/b.png and b/b.png differ'])
  })

  it('reads what diff -u writes', () => {
    const files = parseDiff(
      '--- old.txt\t2026-01-01 00:00:00\n+++ new.txt\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n--- c\n+++ c\n' +
        '@@ -1 +1 @@\n-a\n+b\n',
    )
    expect(files.map(titleOf)).toEqual(['old.txt → new.txt', 'c'])
  })

  it('keeps what was cut off in the middle', () => {
    const [file] = parseDiff('diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n-b\n... (truncated)')
    expect(file!.hunks[0]!.lines).toHaveLength(2)
    expect(file!.notes).toEqual(['... (truncated)'])
  })

  it('keeps what is no diff', () => {
    expect(parseDiff('hello\nworld')).toEqual([{ from: '', to: '', notes: ['hello', 'world'], hunks: [] }])
    expect(parseDiff('')).toEqual([])
  })
})

describe('patches', () => {
  const patch = `*** Begin Patch
*** Update File: cache.go
*** Move to: store.go
@@ func (c *Cache) Get(
@@ 	c.mu.Lock()
 	same
-	old

+	new
@@ -1,3 +1,4 @@
-x
*** End of File
*** Add File: notes.md
+# Notes
+--- not a header
*** Delete File: junk
*** End Patch
`
  it('reads every section', () => {
    const files = parseDiff(patch)
    expect(files.map(titleOf)).toEqual(['cache.go → store.go', 'notes.md (new)', 'junk (deleted)'])
    expect(files[0]!.hunks.map((hunk) => [hunk.heading, hunk.lines.map((line) => line.mark[0] + line.text)])).toEqual([
      ['func (c *Cache) Get( › \tc.mu.Lock()', ['s\tsame', 'r\told', 's', 'a\tnew']],
      ['', ['rx']],
    ])
    expect(files[1]!.hunks[0]!.lines.map((line) => line.text)).toEqual(['# Notes', '--- not a header'])
    expect(files[0]!.hunks[0]!.lines[0]!.before).toBeUndefined()
  })
})

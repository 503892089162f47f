import { expect, it } from 'vitest'
import { attach, filesOf, noAttachments, withFiles } from './files'

it('takes text of any kind and says what it does not take', async () => {
  const { attachments, problems } = await attach(noAttachments, [
    new File(['package main\n'], 'main.go'),
    new File(['{}'], 'a`b.json', { type: 'application/json' }),
    new File([new Uint8Array([0x25, 0x50, 0xff, 0x00])], 'a.pdf', { type: 'application/pdf' }),
    new File(['a\0b'], 'data.bin'),
    new File([' \n'], 'empty.txt'),
    new File(['x'.repeat(600_000)], 'long.log'),
    new File(['x'], 'a.png', { type: 'image/png' }),
  ])
  expect(attachments.files.map((f) => f.name)).toEqual(['main.go', 'a_b.json'])
  expect(attachments.pictures.map((p) => p.name)).toEqual(['a.pdf', 'a.png'])
  expect(problems.map((p) => p.split(' ')[0])).toEqual(['data.bin', 'empty.txt', 'long.log'])
})

it('finds the files of a message again', () => {
  const files = [
    { name: 'a.md', text: 'text\n```go\nx\n```\n\nFile `no.txt`:\n\n```\nnone\n```' },
    { name: 'b.txt', text: 'b' },
  ]
  expect(filesOf(withFiles('Look at these.', files))).toEqual({ text: 'Look at these.', files })
  const plain = 'No file.\n\nFile `a`:\n\n```\nnever closed'
  expect(filesOf(plain)).toEqual({ text: plain, files: [] })
})

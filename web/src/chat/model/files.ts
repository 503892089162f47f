import { accept, choose, type Picture } from './images'

// Files of a message. Images and PDFs are sent unchanged; a text file becomes a part of the message, under its name.

export interface TextFile {
  name: string
  text: string
}

export interface Attachments {
  pictures: Picture[]
  files: TextFile[]
}

export const noAttachments: Attachments = { pictures: [], files: [] }

const maxFiles = 8
const maxText = 512 * 1024 // bytes of all text files; a message has at most 1 MiB

const bytes = (text: string) => new TextEncoder().encode(text).length

// attach adds files to a message, and says for each rejected file why it was rejected.
export async function attach(
  have: Attachments,
  list: File[],
): Promise<{ attachments: Attachments; problems: string[] }> {
  const images = list.filter((file) => accept.split(',').includes(file.type))
  const { pictures, problems } = await choose(have.pictures, images)
  const files = [...have.files]
  for (const file of list) {
    if (images.includes(file)) continue
    const text = file.size > maxText ? undefined : await readText(file)
    const all = files.reduce((sum, each) => sum + bytes(each.text), 0)
    if (file.size > maxText || all + file.size > maxText)
      problems.push(`${file.name} was not added: the text files of a message have at most 512 KiB.`)
    else if (text === undefined)
      problems.push(`${file.name} was not added: it is neither text nor a PNG, JPEG, GIF or WebP image or a PDF.`)
    else if (text.trim() === '') problems.push(`${file.name} was not added: it is empty.`)
    else if (files.length >= maxFiles)
      problems.push(`${file.name} was not added: a message has at most ${maxFiles} text files.`)
    else files.push({ name: clean(file.name), text })
  }
  return { attachments: { pictures, files }, problems }
}

// readText returns the content of a text file; undefined: it is not a text file.
async function readText(file: File): Promise<string | undefined> {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer())
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}

const clean = (name: string) => name.replace(/[`\p{C}]/gu, '_')

// withFiles is a message with the text of its files below. Each is in a block that its text cannot close.
export function withFiles(message: string, files: TextFile[]): string {
  const blocks = files.map(({ name, text }) => {
    const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length))
    const fence = '`'.repeat(longest + 1)
    return `\n\nFile \`${name}\`:\n\n${fence}\n${text.replace(/\n$/, '')}\n${fence}`
  })
  return message + blocks.join('')
}

const block = /\n\nFile `([^`\n]+)`:\n\n(`{3,})\n([\s\S]*?)\n\2(?=\n\nFile `|$)/y

// filesOf is the inverse of withFiles. A message in another format has no files.
export function filesOf(message: string): { text: string; files: TextFile[] } {
  for (let at = message.indexOf('\n\nFile `'); at >= 0; at = message.indexOf('\n\nFile `', at + 1)) {
    const files: TextFile[] = []
    block.lastIndex = at
    for (let found = block.exec(message); found !== null; found = block.exec(message)) {
      files.push({ name: found[1]!, text: found[3]! })
      if (block.lastIndex === message.length) return { text: message.slice(0, at), files }
    }
  }
  return { text: message, files: [] }
}

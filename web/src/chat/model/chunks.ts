// chunks cuts markdown where a cut does not change the rendering: at blank lines before the start of a block. While an
// answer grows, only its last chunk is parsed again.

const fence = /^ {0,3}(`{3,}|~{3,})/
const definition = /^ {0,3}\[[^\]]+\]:/m
// Lines that may continue a block after a blank line: a list, a quote, a table, or anything indented.
const goesOn = /^(?:\s|[-*+>|]|\d+[.)])/

export function chunks(text: string): string[] {
  if (definition.test(text)) return [text] // the definition may be used anywhere
  const list: string[] = []
  let from = 0
  let open = ''
  let blank = false
  let at = 0
  for (const line of text.split('\n')) {
    const mark = fence.exec(line)?.[1]
    if (open === '') {
      if (blank && at > from && line !== '' && !goesOn.test(line)) {
        list.push(text.slice(from, at))
        from = at
      }
      if (mark !== undefined) open = mark
    } else if (mark !== undefined && mark.startsWith(open) && line.trim() === mark) open = ''
    blank = line.trim() === '' && open === ''
    at += line.length + 1
  }
  if (from < text.length) list.push(text.slice(from))
  return list
}

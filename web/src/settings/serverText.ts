// The text of an MCP server's settings in the fields of its form.

// words splits a command line. Quotes keep spaces, a backslash keeps the next character.
export function words(line: string): string[] {
  const found: string[] = []
  let word: string | undefined
  let quote = ''
  for (let i = 0; i < line.length; i++) {
    const c = line[i]!
    if (c === '\\' && quote !== "'" && i + 1 < line.length) word = (word ?? '') + line[++i]
    else if (quote !== '') {
      if (c === quote) quote = ''
      else word += c
    } else if (c === '"' || c === "'") {
      quote = c
      word ??= ''
    } else if (/\s/.test(c)) {
      if (word !== undefined) found.push(word)
      word = undefined
    } else word = (word ?? '') + c
  }
  if (word !== undefined) found.push(word)
  return found
}

// pairs writes names and values, one pair per line, with a separator.
export function pairs(values: Record<string, string>, sign: '=' | ':'): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}${sign}${sign === ':' ? ' ' : ''}${value}`)
    .join('\n')
}

// pairsOf parses the text of pairs.
export function pairsOf(text: string, sign: '=' | ':'): Record<string, string> {
  const values: Record<string, string> = {}
  for (const line of text.split('\n')) {
    const at = line.indexOf(sign)
    const name = (at < 0 ? line : line.slice(0, at)).trim()
    if (name !== '') values[name] = at < 0 ? '' : line.slice(at + 1).trim()
  }
  return values
}

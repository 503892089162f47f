// Math in markdown: \( … \) and $ … $ in a line, \[ … \] and $$ … $$ on lines of its own. Markdown would take the
// backslashes away, so math becomes inline code with a mark, which the parser leaves alone.

export interface Formula {
  tex: string
  display: boolean // on a line of its own
}

// Private-use characters: no font has them. If a model writes them, they become math.
const inLine = '\ue0f0'
const onItsOwn = '\ue0f1'

// Dollars are also prices. Math has no space inside the dollars, and no digit or word beside them.
const either = new RegExp(
  [
    // code: a fence, or a span
    String.raw`^ {0,3}(?<fence>${'`'}{3,}|~{3,})[^\n]*\n[\s\S]*?(?:\n {0,3}\k<fence>[^\n]*(?=\n|$)|$(?![\s\S]))`,
    String.raw`(?<ticks>${'`'}+)(?!${'`'})[\s\S]*?[^${'`'}]\k<ticks>(?!${'`'})`,
    String.raw`\\\[(?<block>[\s\S]+?)\\\]`,
    String.raw`\$\$(?<dollars>[\s\S]+?)\$\$`,
    String.raw`\\\((?<line>[\s\S]+?)\\\)`,
    String.raw`(?<![\\$\w])\$(?![\s$])(?<dollar>[^$\n]*[^\s$\\]|[^\s$\\])\$(?![\w$])`,
  ].join('|'),
  'gm',
)

export function mayHaveMath(text: string): boolean {
  return /\\[[(]|\$/.test(text)
}

// withMath turns math into code. Math inside existing code is left alone.
export function withMath(text: string): string {
  if (!mayHaveMath(text)) return text
  return text.replace(either, (all: string, ...found: unknown[]) => {
    const { block, dollars, line, dollar } = found.at(-1) as Record<string, string | undefined>
    const tex = block ?? dollars ?? line ?? dollar
    if (tex === undefined || /\n\s*\n/.test(tex)) return all
    const display = block !== undefined || dollars !== undefined
    const fence = '`'.repeat(1 + Math.max(0, ...(tex.match(/`+/g) ?? []).map((run) => run.length)))
    return `${fence}${display ? onItsOwn : inLine}${tex.replaceAll('\n', ' ')}${/`$/.test(tex) ? ' ' : ''}${fence}`
  })
}

// formulaOf reads a formula that withMath has turned into code.
export function formulaOf(text: string): Formula | undefined {
  const mark = text[0]
  if (mark !== inLine && mark !== onItsOwn) return undefined
  return { tex: text.slice(1).trim(), display: mark === onItsOwn }
}

// Colours for code, fetched when the first block with a known language is shown.

import type { LanguageFn } from 'highlight.js'
import { createLowlight } from 'lowlight'

export type Piece = string | { look: string; inside: Piece[] }

type Source = () => Promise<{ default: LanguageFn }>

const languages: Record<string, Source> = {
  bash: () => import('highlight.js/lib/languages/bash'),
  css: () => import('highlight.js/lib/languages/css'),
  diff: () => import('highlight.js/lib/languages/diff'),
  go: () => import('highlight.js/lib/languages/go'),
  json: () => import('highlight.js/lib/languages/json'),
  python: () => import('highlight.js/lib/languages/python'),
  rust: () => import('highlight.js/lib/languages/rust'),
  sql: () => import('highlight.js/lib/languages/sql'),
  typescript: () => import('highlight.js/lib/languages/typescript'),
  xml: () => import('highlight.js/lib/languages/xml'),
  yaml: () => import('highlight.js/lib/languages/yaml'),
}

const otherNames: Record<string, string> = {
  sh: 'bash',
  shell: 'bash',
  console: 'bash',
  zsh: 'bash',
  golang: 'go',
  py: 'python',
  rs: 'rust',
  js: 'typescript',
  jsx: 'typescript',
  ts: 'typescript',
  tsx: 'typescript',
  javascript: 'typescript',
  html: 'xml',
  svg: 'xml',
  yml: 'yaml',
  jsonc: 'json',
  patch: 'diff',
}

const lowlight = createLowlight()

// The colours are the variables of theme.css, so that both themes work.
const looks: Record<string, string> = {
  keyword: 'text-accent',
  built_in: 'text-accent',
  literal: 'text-accent',
  type: 'text-accent',
  tag: 'text-accent',
  name: 'text-accent',
  selector: 'text-accent',
  string: 'text-done',
  regexp: 'text-done',
  addition: 'text-done',
  number: 'text-waiting',
  attr: 'text-waiting',
  attribute: 'text-waiting',
  symbol: 'text-waiting',
  meta: 'text-ink-soft',
  comment: 'text-ink-soft italic',
  deletion: 'text-failed',
  title: 'font-medium',
  section: 'font-medium',
}

// highlight returns the code in coloured pieces; null: the language is unknown.
export async function highlight(code: string, language: string): Promise<Piece[] | null> {
  const asked = language.toLowerCase()
  const name = otherNames[asked] ?? asked
  const source = Object.hasOwn(languages, name) ? languages[name] : undefined
  if (source === undefined) return null
  if (!lowlight.registered(name)) lowlight.register(name, (await source()).default)
  return lowlight.highlight(name, code).children.map(pieceOf)
}

interface HastNode {
  type: string
  value?: string
  properties?: { className?: unknown }
  children?: HastNode[]
}

function pieceOf(node: unknown): Piece {
  const { type, value, properties, children } = node as HastNode
  if (type === 'text') return value ?? ''
  const names = Array.isArray(properties?.className) ? properties.className.map(String) : []
  const look = names.map((n) => looks[n.replace(/^hljs-/, '').split('.')[0]!] ?? '').join(' ')
  return { look: look.trim(), inside: (children ?? []).map(pieceOf) }
}

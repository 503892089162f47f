import './markdown.css'
import { memo, useMemo, type ReactNode } from 'react'
import ReactMarkdown, { type Components } from 'react-markdown'
import remarkGfm from 'remark-gfm'
import { classes } from '../../ui/classes'
import { LinkIcon } from '../../ui/icons'
import { chunks } from '../model/chunks'
import { formulaOf, withMath } from '../model/math'
import { CodeBlock } from './CodeBlock'
import { Diagram } from './Diagram'
import { Formula } from './Formula'
import { safeTarget, targetName } from '../model/links'
import { Prose } from './Prose'

// Raw HTML is shown as text, links lead to their visible target, and showing a
// text loads nothing.
export function Markdown({ text, live }: { text: string; live?: boolean }) {
  const parts = useMemo(() => chunks(text), [text])
  return (
    <div className={classes('markdown min-w-0 break-words', live && 'live')}>
      {parts.map((part, at) => (
        <Chunk key={at} text={part} live={live === true && at === parts.length - 1} />
      ))}
    </div>
  )
}

const plugins = [remarkGfm]

const Chunk = memo(function Chunk({ text, live }: { text: string; live: boolean }) {
  return (
    <ReactMarkdown
      remarkPlugins={plugins}
      rehypePlugins={marks}
      components={live ? liveComponents : components}
      urlTransform={(url) => (safeTarget(url) === null ? '' : url)}
    >
      {withMath(text)}
    </ReactMarkdown>
  )
})

// Deceptive characters become elements, which `mark` below shows.
interface Node {
  type: string
  value?: string
  tagName?: string
  properties?: Record<string, unknown>
  children?: Node[]
}

const marks = [
  () => (tree: unknown) => {
    walk(tree as Node)
  },
]

const suspicious = new RegExp(
  '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u061c\\u180e\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f]' +
    '|[\\ufeff\\ufff0-\\ufffb]|[\\u{e0000}-\\u{e0fff}]',
  'u',
)

function walk(node: Node): void {
  if (node.tagName === 'code' || node.children === undefined) return // CodeBlock and Code show it
  node.children = node.children.map((child) => {
    if (child.type !== 'text' || !suspicious.test(child.value ?? '')) {
      walk(child)
      return child
    }
    return { type: 'element', tagName: 'mark', properties: {}, children: [child] }
  })
}

function textOf(children: ReactNode): string {
  if (typeof children === 'string') return children
  return Array.isArray(children) ? children.map(textOf).join('') : ''
}

function Link({ href, children }: { href?: string; children?: ReactNode }) {
  const target = href === undefined ? null : safeTarget(href)
  if (target === null) return <span>{children}</span>
  const name = targetName(target)
  const says = textOf(children)
  return (
    <a
      href={target.href}
      target="_blank"
      rel="noopener noreferrer nofollow"
      title={target.href}
      className="text-accent underline decoration-from-font underline-offset-2"
    >
      {children}
      {!says.includes(name) && <span className="text-xs text-ink-soft"> ({name})</span>}
    </a>
  )
}

// An image is not fetched without a click: a request would tell its server who reads the answer.
function Picture({ src, alt }: { src?: string; alt?: string }) {
  const target = typeof src === 'string' ? safeTarget(src) : null
  return (
    <span
      className={classes(
        'my-1 inline-flex max-w-full items-center gap-2 rounded-md border',
        'border-dashed border-line-strong px-3 py-2 text-sm text-ink-soft',
      )}
    >
      <span className="truncate">Image{alt ? `: ${alt}` : ''}</span>
      {target !== null && (
        <a
          href={target.href}
          target="_blank"
          rel="noopener noreferrer nofollow"
          className="inline-flex items-center gap-1 whitespace-nowrap text-accent underline"
        >
          open at {targetName(target)} <LinkIcon />
        </a>
      )}
    </span>
  )
}

const components: Components = {
  a: ({ href, children }) => <Link href={href}>{children}</Link>,
  img: ({ src, alt }) => <Picture src={typeof src === 'string' ? src : undefined} alt={alt} />,
  mark: ({ children }) => <Prose>{textOf(children)}</Prose>,
  // Headings in an answer rank below those of the page.
  h1: ({ children }) => <h3 className="first">{children}</h3>,
  h2: ({ children }) => <h4 className="second">{children}</h4>,
  h3: ({ children }) => <h5>{children}</h5>,
  h4: ({ children }) => <h6>{children}</h6>,
  h5: ({ children }) => <h6>{children}</h6>,
  pre: ({ children }) => <>{children}</>,
  table: ({ children }) => (
    <div className="my-3 overflow-x-auto" tabIndex={0} role="region" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  code: ({ className, children, node }) => <Code className={className} text={textOf(children)} block={isBlock(node)} />,
  input: ({ checked }) => <span aria-label={checked ? 'done' : 'not done'}>{checked ? '☑' : '☐'} </span>,
}

const liveComponents: Components = {
  ...components,
  code: ({ className, children, node }) => (
    <Code className={className} text={textOf(children)} block={isBlock(node)} live />
  ),
}

// A fence has several lines or a language; inline `code` has neither.
function isBlock(node: unknown): boolean {
  const { position, children } = node as {
    position?: { start: { line: number }; end: { line: number } }
    children?: { value?: string }[]
  }
  return (
    (position !== undefined && position.start.line !== position.end.line) || (children?.[0]?.value ?? '').endsWith('\n')
  )
}

const shortCode = 24 // characters

function Code({ className, text, block, live }: { className?: string; text: string; block: boolean; live?: boolean }) {
  const language = /language-([\w+#-]+)/.exec(className ?? '')?.[1]
  const formula = formulaOf(text)
  if (formula !== undefined) return <Formula formula={formula} />
  if (language === 'mermaid' && !live) return <Diagram code={text.replace(/\n$/, '')} />
  if (block || language !== undefined)
    return <CodeBlock code={text.replace(/\n$/, '')} language={language} live={live} />
  return (
    <code
      className={classes(
        'rounded bg-sunken px-1 py-0.5 font-mono text-[0.88em]',
        // A short one is not broken: the hyphen of -race would end a line.
        text.length <= shortCode ? 'whitespace-nowrap' : '[overflow-wrap:anywhere]',
      )}
    >
      <Prose>{text}</Prose>
    </code>
  )
}

import { Coloured, useColours } from '../ui/Coloured'
import { Exact } from '../ui/Mono'

// Code is a file with line numbers.
export function Code({ text, path }: { text: string; path: string }) {
  const lines = text.replace(/\n$/, '').split('\n')
  const colours = useColours(lines, path)
  return (
    <div
      tabIndex={0}
      role="group"
      aria-label={`Content of ${path}`}
      className="flex max-h-[70dvh] overflow-auto bg-paper font-mono text-xs leading-5"
    >
      <pre aria-hidden="true" className="shrink-0 px-3 py-2 text-right text-ink-soft select-none">
        {lines.map((_, at) => at + 1).join('\n')}
      </pre>
      <pre dir="ltr" className="grow py-2 pr-4 [unicode-bidi:isolate]">
        <code>
          {colours === null ? <Exact>{text}</Exact> : <Coloured pieces={colours.flatMap((line) => [...line, '\n'])} />}
        </code>
      </pre>
    </div>
  )
}

import { useEffect, useId, useState } from 'react'
import { Button } from '../../ui/Button'
import { CodeBlock } from './CodeBlock'

// Diagram shows a drawing by Mermaid. The drawing is an image: nothing in it can run, be clicked or load anything. Text
// that is not a diagram is shown unchanged.
export function Diagram({ code }: { code: string }) {
  const id = 'diagram' + useId().replaceAll(/\W/g, '')
  const [drawn, setDrawn] = useState<{ code: string; url: string; dark: boolean } | 'failed' | null>(null)
  const [text, setText] = useState(false)
  const dark = useDark()
  useEffect(() => {
    let gone = false
    import('./mermaid')
      .then(({ draw }) => draw(id, code, dark))
      .then((url) => !gone && setDrawn({ code, url, dark }))
      .catch(() => !gone && setDrawn('failed'))
    return () => {
      gone = true
    }
  }, [id, code, dark])
  if (drawn === null || drawn === 'failed' || drawn.code !== code || text)
    return (
      <div>
        <CodeBlock code={code} language="mermaid" />
        {text && (
          <Button small kind="quiet" onClick={() => setText(false)}>
            Show the diagram
          </Button>
        )}
      </div>
    )
  return (
    <figure className="my-3 overflow-hidden rounded-lg border border-line">
      <div tabIndex={0} role="region" aria-label="Diagram" className="overflow-x-auto bg-paper p-3">
        <img src={drawn.url} alt={`Diagram: ${code}`} className="mx-auto max-w-none" />
      </div>
      <figcaption className="border-t border-line bg-raised px-2 py-1">
        <Button small kind="quiet" onClick={() => setText(true)}>
          Show the text
        </Button>
      </figcaption>
    </figure>
  )
}

function useDark(): boolean {
  const [dark, setDark] = useState(isDark)
  useEffect(() => {
    const look = () => setDark(isDark())
    const watch = new MutationObserver(look)
    watch.observe(document.documentElement, { attributes: true })
    return () => watch.disconnect()
  }, [])
  return dark
}

function isDark(): boolean {
  return document.documentElement.dataset.theme === 'dark'
}

import mermaid from 'mermaid'

const most = 20_000 // characters

// The library measures labels as HTML on the page. Tags in them become text, with the library's own escapes. Line
// breaks, arrows and <<annotations>> may stay.
const tag = /(?<!<)<(?!br\s*\/?>)(?=[a-z/!?])/gi

// draw makes an image of a diagram, as a data URL. It throws if the text is not a diagram. Diagrams are drawn one after
// the other: the library keeps global settings.
export function draw(id: string, code: string, dark: boolean): Promise<string> {
  const drawing = last.then(() => drawOne(id, code, dark))
  last = drawing.catch(() => {})
  return drawing
}

let last: Promise<unknown> = Promise.resolve()

async function drawOne(id: string, code: string, dark: boolean): Promise<string> {
  if (code.length > most) throw new Error('too long')
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: 'strict',
    suppressErrorRendering: true,
    htmlLabels: false,
    flowchart: { htmlLabels: false },
    theme: dark ? 'dark' : 'neutral',
    fontFamily: 'sans-serif', // an image cannot use the page's fonts
    maxTextSize: most,
  })
  const { svg } = await mermaid.render(id, code.replace(tag, '#lt;'))
  return 'data:image/svg+xml,' + encodeURIComponent(sized(svg))
}

// sized gives a drawing its natural size: an image needs one.
function sized(svg: string): string {
  const drawing = new DOMParser().parseFromString(svg, 'image/svg+xml').documentElement
  if (drawing.nodeName !== 'svg') throw new Error('no drawing')
  const [, , width, height] = (drawing.getAttribute('viewBox') ?? '').split(/[\s,]+/).map(Number)
  if (width && height) {
    drawing.setAttribute('width', String(Math.ceil(width)))
    drawing.setAttribute('height', String(Math.ceil(height)))
  }
  return new XMLSerializer().serializeToString(drawing)
}

import 'katex/dist/katex.min.css'
import katex from 'katex'

// draw builds a formula from elements, without HTML text in between. It throws if the text is not math.
export function draw(tex: string, displayMode: boolean, into: HTMLElement): void {
  katex.render(tex, into, { displayMode, throwOnError: true, trust: false, strict: false, maxSize: 20, maxExpand: 500 })
}

// A toast is a line about an action that succeeded or failed and has no place
// on the page. A message that needs an answer is not a toast.
export interface Toast {
  id: number
  text: string
  tone: 'done' | 'failed' | 'hint'
  lasts: number // milliseconds
}

let toasts: Toast[] = []
let last = 0
const listeners = new Set<() => void>()

function change(next: Toast[]): void {
  toasts = next
  for (const listener of listeners) listener()
}

const most = 4

const usual = { done: 5_000, failed: 10_000, hint: 5_000 }

export function toast(text: string, tone: Toast['tone'] = 'done', lasts = usual[tone]): void {
  change([...toasts, { id: ++last, text, tone, lasts }].slice(-most))
}

export function dismiss(id: number): void {
  change(toasts.filter((t) => t.id !== id))
}

export function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function current(): Toast[] {
  return toasts
}

// A toast is a line about something that was done, or could not be, and that no
// place on the page shows. Anything that waits for an answer is not a toast.
export interface Toast {
  id: number
  text: string
  tone: 'done' | 'failed'
}

let toasts: Toast[] = []
let last = 0
const listeners = new Set<() => void>()

function change(next: Toast[]): void {
  toasts = next
  for (const listener of listeners) listener()
}

const most = 4

export function toast(text: string, tone: Toast['tone'] = 'done'): void {
  change([...toasts, { id: ++last, text, tone }].slice(-most))
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

import { Exact } from '../ui/Mono'

// ExplanationText is the model's explanation of an approval.
export function ExplanationText({ children }: { children: string }) {
  return (
    <div role="note" aria-label="Explanation" className="rounded-md border border-line bg-paper px-3 py-2 text-sm">
      <p className="mb-1 text-xs text-ink-soft">Explanation by the model, which may be wrong:</p>
      <p className="whitespace-pre-wrap break-words">
        <Exact>{children}</Exact>
      </p>
    </div>
  )
}

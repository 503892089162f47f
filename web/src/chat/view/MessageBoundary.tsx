import { Component, type ReactNode } from 'react'

// MessageBoundary contains rendering errors: if one message fails, the rest of the conversation stays.
export class MessageBoundary extends Component<{ children: ReactNode; raw: unknown }, { failed: boolean }> {
  override state = { failed: false }

  static getDerivedStateFromError() {
    return { failed: true }
  }

  override componentDidCatch(error: unknown) {
    console.warn('A message could not be drawn.', error)
  }

  override componentDidUpdate(before: { raw: unknown }) {
    if (this.state.failed && before.raw !== this.props.raw) this.setState({ failed: false })
  }

  override render() {
    if (!this.state.failed) return this.props.children
    return (
      <details className="rounded-md border border-failed bg-failed-soft px-3 py-2 text-sm">
        <summary>This message cannot be shown. Open this to see its raw content.</summary>
        <pre className="mt-2 max-h-64 overflow-auto font-mono text-xs whitespace-pre-wrap">
          {safely(this.props.raw)}
        </pre>
      </details>
    )
  }
}

function safely(value: unknown): string {
  try {
    return JSON.stringify(value, null, 2) ?? ''
  } catch {
    return 'The raw content cannot be shown either.'
  }
}

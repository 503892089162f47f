import { useState, type ReactNode } from 'react'
import { Button } from './Button'
import { Dialog } from './Dialog'
import { ErrorState } from './ErrorState'

interface ConfirmProps {
  title: string // a question
  children: ReactNode // the consequences
  yes: string // the verb: Delete
  no?: string
  failed: string // the error message: "The agent was not deleted."
  act: () => Promise<unknown>
  onClose: () => void
}

// Confirm asks before an action that cannot be undone. If the action fails, it stays open with the reason.
export function Confirm({ title, children, yes, no = 'Keep it', failed, act, onClose }: ConfirmProps) {
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<unknown>(null)
  const go = async () => {
    setBusy(true)
    setProblem(null)
    try {
      await act()
      onClose()
    } catch (error) {
      setProblem(error)
      setBusy(false)
    }
  }
  return (
    <Dialog
      open
      alert
      onOpenChange={(open) => !open && onClose()}
      title={title}
      description={children}
      actions={
        <>
          <Button onClick={onClose}>{no}</Button>
          <Button kind="danger" busy={busy} disabled={busy} onClick={() => void go()}>
            {problem === null ? yes : 'Try again'}
          </Button>
        </>
      }
    >
      {problem !== null && <ErrorState className="mt-3" what={failed} error={problem} />}
    </Dialog>
  )
}

import { classes } from './classes'

// The statuses of the protocol; an unknown one is shown unchanged.
type Tone = 'accent' | 'waiting' | 'failed' | 'done' | 'quiet'

const tones: Record<string, Tone> = {
  running: 'accent',
  executing: 'accent',
  connecting: 'accent',
  connected: 'done',
  open: 'accent',
  waiting: 'waiting',
  planned: 'waiting',
  unknown: 'waiting',
  interrupted: 'waiting',
  failed: 'failed',
  error: 'failed',
  halted: 'failed',
  unreachable: 'failed',
  done: 'done',
  completed: 'done',
  succeeded: 'done',
  approved: 'done',
  denied: 'quiet',
  blocked: 'failed',
  rejected: 'quiet',
  cancelled: 'quiet',
  stopped: 'quiet',
  disconnected: 'quiet',
  idle: 'quiet',
}

const looks: Record<Tone, string> = {
  accent: 'bg-accent-soft text-accent',
  waiting: 'bg-waiting-soft text-waiting',
  failed: 'bg-failed-soft text-failed',
  done: 'bg-done-soft text-done',
  quiet: 'bg-sunken text-ink-soft',
}

// A shape for each status, since many people cannot tell colours apart.
const shapes: Record<Tone, string> = { accent: '●', waiting: '◐', failed: '▲', done: '✓', quiet: '○' }

export function StatusBadge({
  status,
  children,
  className,
}: {
  status: string
  children?: React.ReactNode
  className?: string
}) {
  const tone = tones[status] ?? 'quiet'
  return (
    <span
      className={classes(
        'inline-flex items-center gap-1 whitespace-nowrap rounded-full px-2 py-0.5 text-xs font-medium',
        looks[tone],
        className,
      )}
    >
      <span aria-hidden="true" className={classes('text-[0.625rem]', tone === 'accent' && 'animate-pulse')}>
        {shapes[tone]}
      </span>
      {children ?? status}
    </span>
  )
}

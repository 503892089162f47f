import { classes } from '../ui/classes'

export interface PlotBar {
  name: string // its time, as a text
  value: number
  bad?: number // the part of value that is drawn in red
  text: string // the value in words
}

// Plot is a row of bars over time. Its sum and each bar are also there in words.
export function Plot({ name, total, bars }: { name: string; total: string; bars: PlotBar[] }) {
  const most = Math.max(...bars.map((bar) => bar.value), 0)
  const width = 100 / Math.max(1, bars.length)
  const height = (value: number) => (most === 0 || value === 0 ? 0 : Math.max(3, (value / most) * 44))
  return (
    <figure className="min-w-0 rounded-lg border border-line bg-raised px-4 py-3">
      <figcaption className="flex items-baseline justify-between gap-2 text-xs text-ink-soft">
        {name} <span className="text-sm font-medium tabular-nums text-ink">{total}</span>
      </figcaption>
      <svg
        viewBox="0 0 100 48"
        preserveAspectRatio="none"
        role="img"
        aria-label={`${name}: ${summary(bars)}`}
        className="mt-2 h-16 w-full"
      >
        <line x1="0" x2="100" y1="47.5" y2="47.5" className="stroke-line" strokeWidth="1" />
        {bars.map((bar, at) => (
          <g key={at}>
            <title>{`${bar.name}: ${bar.text}`}</title>
            <rect x={at * width} y="0" width={width} height="48" fill="transparent" />
            <rect
              x={at * width + width * 0.15}
              y={47 - height(bar.value)}
              width={width * 0.7}
              height={height(bar.value)}
              className="fill-accent"
            />
            {bar.bad !== undefined && bar.bad > 0 && (
              <rect
                x={at * width + width * 0.15}
                y={47 - height(bar.bad)}
                width={width * 0.7}
                height={height(bar.bad)}
                className={classes('fill-failed')}
              />
            )}
          </g>
        ))}
      </svg>
      <div className="flex justify-between text-xs text-ink-soft" aria-hidden="true">
        <span>{bars[0]?.name}</span>
        <span>{bars.at(-1)?.name}</span>
      </div>
    </figure>
  )
}

// summary tells people who do not see the bars where the high ones are.
function summary(bars: PlotBar[]): string {
  const high = bars.filter((bar) => bar.value > 0).toSorted((a, b) => b.value - a.value)
  if (high.length === 0) return 'nothing in this time'
  return `highest ${high
    .slice(0, 3)
    .map((bar) => `${bar.text} at ${bar.name}`)
    .join(', ')}`
}

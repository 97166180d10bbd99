"""An audit, in the order in which it happens. Each step uses only the steps above it.

    plan, plan_file     what is asked for (draft, dialogue, wishes: how `plumbob init` writes it; sweep: every defence)
    open                the data and models that the plan names, checked against it (fit, precheck)
    expand              every unit, case and address of the plan, and what it leaves untried
    schedule            which cases one worker takes together (cost, estimate: what that will take)
    run                 one unit at work: train, predict, attack, score, one finding (finding, flows, provenance)
    store               where findings are kept, claimed and shared
    work, engines       workers that take pieces of the schedule: processes, ray or dask; `run_job` is the one way to run a plan
    summarise           findings to verdicts (limits, learnt: when no leak found means nothing)
    gate, frontier, matrix   what is asked of the verdicts: conditions, the best defence, who could be curious

`plumbob.app.run_audit` goes through these steps and then renders the report.
"""

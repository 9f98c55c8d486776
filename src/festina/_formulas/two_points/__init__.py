"""The two-point theory: how far apart two inputs are in a layer and in the output, while encoder and decoder learn.

`pair` has the data classes, `flow` the solution for all pairs and all limits, with derivatives, and `single_pair` the
same closed form for one pair in plain numbers; `ends` has the conserved quantity and the end of learning, and
`rotation` the solution for networks with one output, whose hidden difference vector may rotate. `checks` refuses
numbers that no two points can have, and `functions` are the formulas with these checks, public as those of
`festina.theories.two_point`. All arguments and results are arrays or numbers.

Letters, the same in all of these modules and in `festina.theories.two_point`:

    dh, dy, Δy*     differences of the two points in the layer, in the output and in the target
    H, P, X, Y      squared distances in the layer, in the output, of the inputs and of the targets
    w               P − dy·Δy*
    τ_h, τ_y        time constants of encoder and decoder; κ = τ_y/τ_h
    α, β, k, D      α = X/(2τ_h), β = 1/(2τ_y), k = √(αβ), D = √Y
    p, q            p = (P − w)/D, the output along the target; q = P − p², the squared component orthogonal to it
    r, v∥, v⊥       r = ±√H, and dy/r along the target and orthogonal to it: p = r v∥, q = r² v⊥²
    ρ, n, m         ρ = r/√α, n = v∥/√β, m = v⊥/√β: in these units both layers learn at the same rate
    A, B            A = H − κXP/H, conserved [vanrossem2024, eq. 24]; B = √(κXY), the final distance of small starts
    g, s            g = βA/2, s = √(g² + k²Y)
    u, v            with one output: dh, and the decoder along the target, vectors with p = u·v
"""

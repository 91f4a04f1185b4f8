(** Theorem 2: what a pair of brackets may leave, from how far apart outputs stay after n of them. *)

Require Import Reals Lra Lia Psatz.
From Coquelicot Require Import Coquelicot.
From Formal.common Require Import Sums.
From Formal.bounded_dyck Require Import Pairs.
Open Scope R_scope.

Definition distance (W : nat) (v w : nat -> R) : R := norm W (fun i => v i - w i).

Lemma norm_nonneg W v : 0 <= norm W v.
Proof. apply sqrt_pos. Qed.

Lemma cauchy W v w : - (norm W v * norm W w) <= dot W v w <= norm W v * norm W w.
Proof.
  pose proof (cauchy_schwarz W v w) as C. rewrite <- (norm_sqr W v), <- (norm_sqr W w) in C.
  pose proof (norm_nonneg W v). pose proof (norm_nonneg W w).
  set (a := norm W v) in *. set (b := norm W w) in *. set (d := dot W v w) in *.
  assert (0 <= a * b) by (apply Rmult_le_pos; assumption).
  replace (a * a * (b * b)) with ((a * b) ^ 2) in C by ring. split; nra.
Qed.

Lemma norm_le W v b : 0 <= b -> dot W v v <= b ^ 2 -> norm W v <= b.
Proof. intros Pb H. unfold norm. rewrite <- (sqrt_pow2 b) by exact Pb. now apply sqrt_le_1_alt. Qed.

Lemma triangle W v w : norm W (fun i => v i + w i) <= norm W v + norm W w.
Proof.
  pose proof (norm_nonneg W v). pose proof (norm_nonneg W w). apply norm_le; [lra|].
  replace (dot W (fun i => v i + w i) (fun i => v i + w i)) with (dot W v v + 2 * dot W v w + dot W w w).
  - rewrite <- !norm_sqr. pose proof (cauchy W v w). nra.
  - unfold dot. rewrite <- Sum_scal, <- !Sum_plus. apply Sum_ext. intros. ring.
Qed.

(** Unit vectors are at most twice as far apart as the vectors are, over the sum of their lengths. *)
Lemma unit_distance W a b : 0 < norm W a -> 0 < norm W b ->
  distance W (LN W a) (LN W b) <= 2 * distance W a b / (norm W a + norm W b).
Proof.
  intros Pa Pb. pose proof (cauchy W a b) as C. pose proof (norm_nonneg W (fun i => a i - b i)) as Pd.
  assert (Sq : distance W a b ^ 2 = norm W a ^ 2 + norm W b ^ 2 - 2 * dot W a b).
  { unfold distance. simpl. rewrite !Rmult_1_r, !norm_sqr. unfold dot. rewrite <- Sum_scal, <- Sum_plus, <- Sum_minus.
    apply Sum_ext. intros. ring. }
  assert (Su : dot W (fun i => LN W a i - LN W b i) (fun i => LN W a i - LN W b i) = 2 - 2 * dot W a b / (norm W a * norm W b)).
  { unfold LN.
    transitivity (dot W a a / (norm W a * norm W a) + dot W b b / (norm W b * norm W b) - 2 * dot W a b / (norm W a * norm W b)).
    - unfold dot, Rdiv. rewrite <- !Sum_scal_r. rewrite (Rmult_comm 2), (Rmult_assoc (Sum W _) 2), <- Sum_scal_r.
      rewrite <- Sum_plus, <- Sum_minus. apply Sum_ext. intros. field. lra.
    - rewrite <- !norm_sqr. field. lra. }
  apply norm_le.
  - apply Rmult_le_pos; [unfold distance; lra|]. apply Rlt_le, Rinv_0_lt_compat. lra.
  - rewrite Su. set (A := norm W a) in *. set (B := norm W b) in *. set (p := dot W a b) in *.
    replace ((2 * distance W a b / (A + B)) ^ 2) with (4 * (distance W a b ^ 2) / (A + B) ^ 2) by (field; lra).
    rewrite Sq. apply (Rmult_le_reg_r (A * B * (A + B) ^ 2)).
    + apply Rmult_lt_0_compat; [apply Rmult_lt_0_compat; lra|apply pow_lt; lra].
    + replace ((2 - 2 * p / (A * B)) * (A * B * (A + B) ^ 2)) with (2 * (A * B - p) * (A + B) ^ 2) by (field; lra).
      replace (4 * (A ^ 2 + B ^ 2 - 2 * p) / (A + B) ^ 2 * (A * B * (A + B) ^ 2))
        with (4 * (A ^ 2 + B ^ 2 - 2 * p) * (A * B)) by (field; lra).
      assert (0 <= 2 * (A * B + p) * (A - B) ^ 2); [|lra].
      apply Rmult_le_pos; [lra|apply pow2_ge_0].
Qed.

(** @statement Bounded Dyck: Theorem 2
    @clause levels that the prefix reaches
    @kind part
    @hypotheses sums x and y of norm at most P, a gamma-Lipschitz head with any outputs, tau > 0, n > 0 pairs
      after which the outputs are tau apart or more
    @formula |delta| <= P (1 + 2 gamma/tau)/n
    @note That the prefixes of (16) reach the level, and their lengths, are prose. *)
Theorem theorem2 :
  forall W O (head : (nat -> R) -> nat -> R) x y delta P gamma tau n,
  0 < tau -> 0 <= gamma -> 0 < n -> norm W x <= P -> norm W y <= P ->
  (forall v w, distance O (head v) (head w) <= gamma * distance W v w) ->
  tau <= distance O (head (LN W (fun i => x i + n * delta i))) (head (LN W (fun i => y i + n * delta i))) ->
  norm W delta <= P * (1 + 2 * gamma / tau) / n.
Proof.
  intros W O head x y delta P gamma tau n Pt Pg Pn Hx Hy Lip Apart.
  pose proof (norm_nonneg W x) as Nx.
  set (S := norm W delta) in *.
  apply (Rmult_le_reg_r n); [exact Pn|].
  replace (P * (1 + 2 * gamma / tau) / n * n) with (P + 2 * gamma * P / tau) by (field; lra).
  assert (0 <= 2 * gamma * P / tau).
  { apply Rmult_le_pos; [apply Rmult_le_pos; lra|]. apply Rlt_le, Rinv_0_lt_compat, Pt. }
  destruct (Rle_lt_dec (S * n) P) as [L|L]; [lra|].
  set (a := fun i => x i + n * delta i) in *. set (b := fun i => y i + n * delta i) in *.
  assert (Far : forall v, norm W v <= P -> n * S - P <= norm W (fun i => v i + n * delta i)).
  { intros v Hv. pose proof (triangle W (fun i => v i + n * delta i) (fun i => - 1 * v i)) as T.
    assert (E1 : norm W (fun i => v i + n * delta i + - 1 * v i) = n * S).
    { unfold S. rewrite <- norm_scaled by exact Pn. unfold norm, dot. f_equal. apply Sum_ext. intros. ring. }
    assert (E2 : norm W (fun i => - 1 * v i) = norm W v).
    { unfold norm, dot. f_equal. apply Sum_ext. intros. ring. }
    cbv beta in T. rewrite E1, E2 in T. lra. }
  pose proof (Far x Hx) as Fa. pose proof (Far y Hy) as Fb. fold a in Fa. fold b in Fb.
  assert (D : distance W a b <= 2 * P).
  { pose proof (triangle W x (fun i => - 1 * y i)) as T.
    assert (E1 : norm W (fun i => x i + - 1 * y i) = distance W a b).
    { unfold distance, norm, dot, a, b. f_equal. apply Sum_ext. intros. ring. }
    assert (E2 : norm W (fun i => - 1 * y i) = norm W y).
    { unfold norm, dot. f_equal. apply Sum_ext. intros. ring. }
    cbv beta in T. rewrite E1, E2 in T. lra. }
  pose proof (unit_distance W a b ltac:(lra) ltac:(lra)) as U.
  pose proof (Lip (LN W a) (LN W b)) as Q.
  set (m := n * S - P) in *. assert (Pm : 0 < m) by (unfold m; lra).
  pose proof (norm_nonneg W (fun i => a i - b i)) as Pd. fold (distance W a b) in Pd.
  assert (Hu : distance W (LN W a) (LN W b) <= 2 * P / m).
  { apply Rle_trans with (1 := U). apply (Rmult_le_reg_r (m * (norm W a + norm W b))).
    - apply Rmult_lt_0_compat; lra.
    - replace (2 * distance W a b / (norm W a + norm W b) * (m * (norm W a + norm W b))) with (2 * distance W a b * m)
        by (field; lra).
      replace (2 * P / m * (m * (norm W a + norm W b))) with (2 * P * (norm W a + norm W b)) by (field; lra). nra. }
  assert (T : tau <= gamma * (2 * P / m)).
  { apply Rle_trans with (1 := Apart). apply Rle_trans with (1 := Q). now apply Rmult_le_compat_l. }
  assert (m <= 2 * gamma * P / tau); [|unfold m in *; lra].
  apply (Rmult_le_reg_r (tau / m)); [apply Rdiv_lt_0_compat; assumption|].
  replace (m * (tau / m)) with tau by (field; lra).
  replace (2 * gamma * P / tau * (tau / m)) with (gamma * (2 * P / m)) by (field; lra). exact T.
Qed.
